package verify_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/net"
)

// define reads a net in the notation of scenario files, one declaration a line; the line is the position. Lists may be
// separated by spaces or commas.
func define(t testing.TB, text string) *net.Net {
	t.Helper()
	d := &net.Definition{Name: "test"}
	gates := map[string]net.Rule{"and": net.And, "xor": net.Xor, "or": net.Or}
	roles := map[string]net.Role{"start": net.Start, "end": net.End, "condition": net.Inner}
	kinds := map[string]net.Kind{"task": net.Atomic, "dummy": net.Routing, "composite": net.Composite}
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(strings.ReplaceAll(line, ",", " "))
		if len(words) < 2 {
			continue
		}
		pos := net.Pos{File: "test.net", Line: i + 1}
		switch word, rest := words[0], words[1:]; word {
		case "start", "end", "condition":
			for _, name := range rest {
				d.Conditions = append(d.Conditions, net.Condition{Name: name, Role: roles[word], Pos: pos})
			}
		case "task", "dummy", "composite":
			task := net.Task{Name: rest[0], Kind: kinds[word], Pos: pos}
			for _, option := range rest[1:] {
				key, value, _ := strings.Cut(option, "=")
				switch key {
				case "join":
					task.Join = gates[value]
				case "split":
					task.Split = gates[value]
				}
			}
			d.Tasks = append(d.Tasks, task)
		case "flow":
			for _, to := range rest[2:] {
				d.Flows = append(d.Flows, net.Flow{From: rest[0], To: to, Pos: pos})
			}
		case "cancel":
			for k := range d.Tasks {
				if d.Tasks[k].Name == strings.TrimSuffix(rest[0], ":") {
					d.Tasks[k].Cancels = rest[1:]
				}
			}
		default:
			require.Fail(t, "unknown declaration", line)
		}
	}
	n, err := net.Compile(d)
	require.NoError(t, err)
	return n
}
