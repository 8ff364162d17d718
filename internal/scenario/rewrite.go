package scenario

import (
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// Rewrite returns the file with other outputs: outputs[i] for Commands[i]. A nil or missing one leaves the command's
// output as it stands, and so does an equal one; every other byte of the file stays too.
//
// A blank line would end the output when the file is read again, so blank lines of an output are left out.
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

// write puts an output after the command's "----" line, whose end of line it takes over.
func (c *Command) write(b *strings.Builder, output []string) {
	newline := c.newline
	if !strings.HasSuffix(newline, "\n") { // "----" was the last thing in the file
		b.WriteString("\n")
		newline += "\n"
	}
	for _, line := range output {
		if !blank(line) {
			b.WriteString(line + newline)
		}
	}
}

// Diff compares an output with the expected one: "" if their lines are equal, and otherwise what has to change in the
// expected one, in the unified form, ending in a newline.
func Diff(want, got []string) string {
	d := string(diff.Diff("expected", joinLines(want), "printed", joinLines(got)))
	_, d, _ = strings.Cut(d, "\n") // the first line names a program that was not run: "diff expected printed"
	return d
}

func joinLines(lines []string) []byte {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
	return []byte(b.String())
}
