package cli

import (
	"os"
	"strings"

	"github.com/tasq-dev/tasq/internal/script"
	"github.com/tasq-dev/tasq/net"
)

func posOf(file string) net.Pos { return net.Pos{File: file, Line: 1} }

// readNotation reads the workflows of a file: one in net notation, or the define commands of a scenario.
func readNotation(path string) ([]*script.Workflow, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	if strings.HasSuffix(path, ".txt") {
		return readDefines(path)
	}
	parsed, err := script.ParseNotation(posOf(path), string(text))
	if err != nil {
		return nil, usagef("%s is not in net notation:\n%w", path, err)
	}
	return parsed, nil
}

// readDefines collects what a scenario defines. A workflow that is defined twice counts as it was defined last.
func readDefines(path string) ([]*script.Workflow, error) {
	f, err := readScenario(path)
	if err != nil {
		return nil, err
	}
	var all []*script.Workflow
	at := make(map[string]int)
	for _, c := range f.Commands {
		action, err := c.Action()
		if err != nil || action.Verb != script.VerbDefine {
			continue
		}
		parsed, err := c.Workflows()
		if err != nil {
			continue // a scenario may show that it is refused
		}
		for _, w := range parsed {
			if i, ok := at[w.Def.Name]; ok {
				all[i] = w
				continue
			}
			at[w.Def.Name] = len(all)
			all = append(all, w)
		}
	}
	if len(all) == 0 {
		return nil, usagef("%s defines no workflow", path)
	}
	return all, nil
}

// problemsOf makes an error of what is wrong with workflows.
func problemsOf(path string, problems []net.Problem) error {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.String()
	}
	return usagef("%s is not well-formed:\n%s", path, strings.Join(lines, "\n"))
}
