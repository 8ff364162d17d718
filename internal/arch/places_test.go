package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// placesIn is the list of a package comment that says what is in which files: the names of files, two or more spaces, and what they hold.
var placesIn = regexp.MustCompile(`(?m)^// # Files of the package\n//\n((?://\t.*\n)+)`)

// A package comment that says where things are names each file of the package once, but for those of one system and the comment's own.
func TestPackageCommentsNameTheFiles(t *testing.T) {
	comments, err := filepath.Glob(filepath.Join(root(t), "store", "*", "doc.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, comment := range comments {
		text, err := os.ReadFile(comment)
		if err != nil {
			t.Fatal(err)
		}
		list := placesIn.FindSubmatch(text)
		if list == nil {
			continue
		}
		found++
		dir := filepath.Dir(comment)
		if named, there := namedIn(string(list[1])), filesIn(t, dir); !slices.Equal(named, there) {
			t.Errorf("the comment of %s names\n%s\nand its files are\n%s", filepath.Base(dir), named, there)
		}
	}
	if found == 0 {
		t.Error("no package says where things are")
	}
}

func namedIn(list string) []string {
	var names []string
	for line := range strings.Lines(list) {
		files, _, _ := strings.Cut(strings.TrimPrefix(line, "//\t"), "  ")
		names = append(names, strings.Split(files, ", ")...)
	}
	slices.Sort(names)
	return names
}

func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range all {
		name := strings.TrimSuffix(filepath.Base(path), ".go")
		if name != "doc" && !strings.HasSuffix(name, "_test") && !strings.HasSuffix(name, "_unix") && !strings.HasSuffix(name, "_other") {
			names = append(names, name)
		}
	}
	return names
}
