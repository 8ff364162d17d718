package arch

import (
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var goBlock = regexp.MustCompile("(?s)```go\n(package main.*?)```\n")

// The README's first program is a program: it is formatted, has at most 40 lines, and prints what it should.
func TestTheFirstProgramRuns(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := goBlock.FindSubmatch(data)
	if block == nil {
		t.Fatal("README.md has no program")
	}
	program := block[1]
	if n := strings.Count(string(program), "\n"); n > 40 {
		t.Errorf("the program has %d lines, and should have at most 40", n)
	}
	if formatted, err := format.Source(program); err != nil || string(formatted) != string(program) {
		t.Errorf("the program is not formatted: %v", err)
	}
	dir := t.TempDir()
	program = []byte(strings.ReplaceAll(string(program), `"article.db"`, "`"+filepath.Join(dir, "article.db")+"`"))
	path := filepath.Join(dir, "main.go")
	if err := os.WriteFile(path, program, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", path)
	cmd.Dir = root(t)
	out, err := cmd.CombinedOutput()
	if want := "completed \"On Petri nets\" <nil>\n"; err != nil || string(out) != want {
		t.Errorf("the program printed %q (%v), want %q", out, err, want)
	}
}
