// Package modeltest provides public process models to tests and benchmarks. They are not part of this repository: a
// test that needs a missing archive is skipped, with a message.
package modeltest

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// File is one file of an archive.
type File struct {
	Name string // path in the archive
	Data string
}

// Base returns the last element of the file's path.
func (f File) Base() string { return path.Base(f.Name) }

// ErrAbsent is the error of [Find] and [Read] for a missing archive. It says where to put it.
var ErrAbsent = errors.New("set TASQ_MODELS to the folder that holds it, or put it into ../shared/models")

// Files is [Read] for a test. It skips the test if the archive is missing.
func Files(t testing.TB, archive string, endings ...string) []File {
	t.Helper()
	files, err := Read(archive, endings...)
	if errors.Is(err, ErrAbsent) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Read returns the files of an archive with the given extensions, sorted by name. The error wraps [ErrAbsent] if the
// archive is missing; see [Find].
func Read(archive string, endings ...string) ([]File, error) {
	name, err := Find(archive)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	files, err := read(f, endings)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return files, nil
}

// Find returns the path of an archive. It is looked for in the folder that the environment variable TASQ_MODELS names,
// or else in "shared/models" beside a folder above the current one. The error names the archive, and wraps [ErrAbsent].
func Find(archive string) (string, error) {
	dirs := []string{os.Getenv("TASQ_MODELS")}
	if dirs[0] == "" {
		dirs = nil
		here, err := os.Getwd()
		for err == nil {
			dirs = append(dirs, filepath.Join(here, "shared", "models"))
			up := filepath.Dir(here)
			if up == here {
				break
			}
			here = up
		}
	}
	for _, d := range dirs {
		name := filepath.Join(d, archive)
		if _, err := os.Stat(name); err == nil {
			return name, nil
		}
	}
	return "", fmt.Errorf("%s is absent: %w", archive, ErrAbsent)
}

func read(r io.Reader, endings []string) ([]File, error) {
	unzipped, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	var files []File
	for archive := tar.NewReader(unzipped); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		wanted := slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(h.Name, e) })
		if h.Typeflag != tar.TypeReg || !wanted {
			continue
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			return nil, err
		}
		files = append(files, File{Name: h.Name, Data: string(data)})
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// InDocs requires that docs/interchange.md has a line, so that the numbers there stay those that tests have measured.
func InDocs(t testing.TB, format string, args ...any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "interchange.md"))
	if err != nil {
		t.Fatal(err)
	}
	if line := fmt.Sprintf(format, args...); !strings.Contains(string(data), line) {
		t.Errorf("docs/interchange.md lacks the line\n%s", line)
	}
}
