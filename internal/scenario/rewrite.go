package scenario

import (
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// Rewrite returns the file with new outputs: outputs[i] is that of Commands[i]. If an output is nil, missing or equal
// to the old one, the text of the old one stays. All other bytes of the file stay too.
//
// Blank lines of an output are omitted, since a blank line ends the output in the file.
func (f *File) Rewrite(outputs [][]string) []byte {
	var b strings.Builder
	done := 0
	for i, c := range f.Commands {
		if i >= len(outputs) || outputs[i] == nil || slices.Equal(outputs[i], c.Expected) {
			continue
		}
		b.WriteString(f.text[done:c.from])
		c.write(&b, outputs[i])
		done = c.to
	}
	b.WriteString(f.text[done:])
	return []byte(b.String())
}

// write writes an output after the "----" of a command, with the same line ends.
func (c *Command) write(b *strings.Builder, output []string) {
	newline := c.newline
	if !strings.HasSuffix(newline, "\n") { // the file ends with "----"
		b.WriteString("\n")
		newline += "\n"
	}
	for _, line := range output {
		if !blank(line) {
			b.WriteString(line + newline)
		}
	}
}

// Diff compares an output with the expected one. It returns "" if their lines are equal, and otherwise the difference
// in the unified form, with a newline at the end.
func Diff(want, got []string) string {
	d := string(diff.Diff("expected", joinLines(want), "printed", joinLines(got)))
	_, d, _ = strings.Cut(d, "\n") // without the first line, which names the program diff
	return d
}

func joinLines(lines []string) []byte {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
	return []byte(b.String())
}
