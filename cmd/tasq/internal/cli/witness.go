package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/check"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// writeWitnesses writes a scenario file for each finding of a file's nets that has a run.
func (c *checks) writeWitnesses(f *check.File) error {
	for i := range f.Nets {
		n := &f.Nets[i]
		for _, finding := range n.Report.Findings {
			text, err := n.Scenario(finding)
			switch {
			case errors.Is(err, check.ErrNoWitness):
				continue
			case err != nil:
				c.unwritten++
				c.a.remark("%s: %s: %s", f.Name, finding, err)
				continue
			}
			path := c.unusedPath(witnessName(f, n, finding))
			if old, err := os.ReadFile(path); err == nil && !bytes.Equal(old, text) && !c.ours(old) {
				return usagef("%s exists, and was not written by tasq check; choose another folder", path)
			}
			if err := os.WriteFile(path, text, 0o666); err != nil {
				return unwritable(path, err)
			}
			c.written[path] = true
		}
	}
	return nil
}

// unusedPath returns a path for a scenario file that this call has not used yet: directories may have files of the same
// name.
func (c *checks) unusedPath(name string) string {
	path := filepath.Join(c.witness, name+".txt")
	for i := 2; c.written[path]; i++ {
		path = filepath.Join(c.witness, fmt.Sprintf("%s.%d.txt", name, i))
	}
	return path
}

// ours reports whether an earlier call wrote a file in the directory of witnesses: its first line is a finding.
func (c *checks) ours(old []byte) bool {
	return slices.ContainsFunc(verify.FindingCodes(), func(code net.Code) bool {
		return bytes.HasPrefix(old, []byte("# "+string(code)))
	})
}

// witnessName returns the file name for a finding of a net in a file.
func witnessName(f *check.File, n *check.Net, finding verify.Finding) string {
	parts := []string{filepath.Base(f.Name)}
	if stem := strings.TrimSuffix(parts[0], filepath.Ext(parts[0])); n.Name != stem {
		parts = append(parts, n.Name)
	}
	parts = append(parts, string(finding.Code))
	if finding.Subject != "" {
		parts = append(parts, finding.Subject)
	}
	clean := func(r rune) rune {
		if r == '.' || scenario.IsName("_"+string(r)) {
			return r
		}
		return '_'
	}
	return printable.Brief([]byte(strings.Map(clean, strings.Join(parts, "."))), 200)
}
