package arch

import (
	"encoding/json"
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
	program := strings.ReplaceAll(piece(t, goProgram, 40), `"article.db"`, "database")
	runs(t, "program", program, "On Petri nets <nil>\n")
}

// The README's function in steps does what its comments say: saving fails twice, and the bank is called once.
func TestTheFunctionInStepsRuns(t *testing.T) {
	t.Parallel()
	around, err := os.ReadFile(filepath.Join("testdata", "steps.txt"))
	if err != nil {
		t.Fatal(err)
	}
	program := strings.Replace(string(around), "// HERE\n", piece(t, goFunction, 25), 1)
	runs(t, "steps", program, "charged 4990\nnot saved\nnot saved\nsaved\n{A-1 ch-1} <nil>\n")
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

// database is a file of the package of a program that runs. It says where the program keeps its database, which is none of its text: so the text
// is the same each time.
const database = `package main

import "os"

var database = os.Getenv("TASQ_README_DATABASE")
`

// runs wants a program to print something. An overlay has the program in a folder that is not there, and always the same: the go command
// compiles and links it again only if the program, or what it imports, has changed.
func runs(t *testing.T, name, program, want string) {
	t.Helper()
	temporary := t.TempDir()
	folder := filepath.Join(root(t), "internal", "arch", "testdata", name)
	replaced := make(map[string]string)
	for file, text := range map[string]string{"main.go": program, "database.go": database} {
		path := filepath.Join(temporary, file)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		replaced[filepath.Join(folder, file)] = path
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(temporary, "overlay.json")
	if err := os.WriteFile(path, overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", "-overlay", path, "./internal/arch/testdata/"+name)
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), "TASQ_README_DATABASE="+filepath.Join(temporary, "article.db"))
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != want {
		t.Errorf("the program printed %q (%v), want %q", out, err, want)
	}
}
