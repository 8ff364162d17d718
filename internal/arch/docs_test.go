package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	examplesOf = regexp.MustCompile(`(?m)^<!-- examples: (\S+) -->$`)
	goCode     = regexp.MustCompile("(?s)```go\n(.*?)```\n")
)

// A page that names files of examples shows parts of them: every piece of Go on the page stands in one of the files, line
// by line but for its indentation. So it compiles, and does what the examples say.
func TestPagesShowTheirExamples(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root(t), "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		files := examplesOf.FindAllSubmatch(text, -1)
		if files == nil {
			continue
		}
		found++
		var lines, names strings.Builder
		for _, file := range files {
			source, err := os.ReadFile(filepath.Join(root(t), string(file[1])))
			if err != nil {
				t.Errorf("%s: %v", filepath.Base(page), err)
			}
			lines.WriteString(bare(string(source)))
			names.WriteString(" " + string(file[1]))
		}
		for _, code := range goCode.FindAllSubmatch(text, -1) {
			if !strings.Contains(lines.String(), "\n"+strings.TrimPrefix(bare(string(code[1])), "\n")) {
				t.Errorf("%s shows what none of%s has:\n%s", filepath.Base(page), names.String(), code[1])
			}
		}
	}
	if found == 0 {
		t.Error("no page names its examples")
	}
}

// bare is a text without the indentation of its lines, each behind a line end.
func bare(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		b.WriteString("\n" + strings.TrimSpace(line))
	}
	b.WriteString("\n")
	return b.String()
}
