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

var (
	goProgram  = regexp.MustCompile("(?s)```go\n(package main.*?)```\n")
	goFunction = regexp.MustCompile("(?s)```go\n(// place .*?)```\n")
)

// The README's first program is a program: it is formatted, has at most 40 lines, and prints what it should.
func TestTheFirstProgramRuns(t *testing.T) {
	t.Parallel()
	program := piece(t, goProgram, 40)
	program = strings.ReplaceAll(program, `"article.db"`, "`"+filepath.Join(t.TempDir(), "article.db")+"`")
	runs(t, program, "On Petri nets <nil>\n")
}

// The README's function in steps does what its comments say: saving fails twice, and the bank is called once.
func TestTheFunctionInStepsRuns(t *testing.T) {
	t.Parallel()
	around, err := os.ReadFile(filepath.Join("testdata", "steps.txt"))
	if err != nil {
		t.Fatal(err)
	}
	program := strings.Replace(string(around), "// HERE\n", piece(t, goFunction, 25), 1)
	runs(t, program, "charged 4990\nnot saved\nnot saved\nsaved\n{A-1 ch-1} <nil>\n")
}

// piece finds a piece of Go in the README, and wants it to be formatted and no longer than it may be.
func piece(t *testing.T, what *regexp.Regexp, lines int) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := what.FindSubmatch(data)
	if block == nil {
		t.Fatal("README.md has none")
	}
	if n := strings.Count(string(block[1]), "\n"); n > lines {
		t.Errorf("it has %d lines, and should have at most %d", n, lines)
	}
	if formatted, err := format.Source(block[1]); err != nil || string(formatted) != string(block[1]) {
		t.Errorf("it is not formatted: %v", err)
	}
	return string(block[1])
}

// runs wants a program to print something.
func runs(t *testing.T, program, want string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(path, []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", path)
	cmd.Dir = root(t)
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != want {
		t.Errorf("the program printed %q (%v), want %q", out, err, want)
	}
}
