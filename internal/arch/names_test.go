package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Pages that name tests as proof: each name must be that of a test or an example in the tree.
var provingPages = []string{"docs/conformance.md"}

var (
	namedTest    = regexp.MustCompile("`((?:Test|Example|Fuzz)[A-Za-z0-9_]*)`")
	declaredTest = regexp.MustCompile(`(?m)^func ((?:Test|Example|Fuzz)[A-Za-z0-9_]*)\(`)
)

func TestPagesNameTestsThatExist(t *testing.T) {
	declared := make(map[string]bool)
	for name := range testsByPackage(t) {
		declared[name[strings.LastIndexByte(name, '.')+1:]] = true
	}
	for _, page := range provingPages {
		text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(page)))
		if err != nil {
			t.Fatal(err)
		}
		names := namedTest.FindAllStringSubmatch(string(text), -1)
		if len(names) == 0 {
			t.Errorf("%s names no test", page)
		}
		for _, name := range names {
			if !declared[name[1]] {
				t.Errorf("%s names %s, and there is no such test", page, name[1])
			}
		}
	}
}
