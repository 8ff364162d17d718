package scenario

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tasq-dev/tasq/net"
)

// Encode writes definitions in the notation, as [Format] does. Parsing the text returns equal definitions, except that
// their positions are those of the text.
//
// The error names what the notation cannot express: a name of another form, see [IsName], an unknown rule or kind, two
// tasks with one name, or a composite task without a workflow.
func Encode(defs ...*net.Definition) (string, error) {
	workflows := make([]*Workflow, len(defs))
	for i, d := range defs {
		if d == nil {
			return "", errors.New("a definition is nil")
		}
		if err := encodable(d); err != nil {
			return "", fmt.Errorf("workflow %s has no form in net notation: %w", quote(d.Name), err)
		}
		workflows[i] = &Workflow{Def: d}
	}
	return Format(workflows), nil
}

func encodable(d *net.Definition) error {
	if !IsName(d.Name) {
		return errors.New("its name is none there")
	}
	for _, c := range d.Conditions {
		if !IsName(c.Name) || c.Role > net.End {
			return fmt.Errorf("condition %s has a name or a role that is none there", quote(c.Name))
		}
	}
	known := make(map[string]bool, len(d.Tasks))
	for i := range d.Tasks {
		t := &d.Tasks[i]
		if known[t.Name] {
			return fmt.Errorf("two tasks are named %s", quote(t.Name))
		}
		known[t.Name] = true
		if err := encodableTask(t); err != nil {
			return fmt.Errorf("task %s %w", quote(t.Name), err)
		}
	}
	for _, f := range d.Flows {
		if !IsName(f.From) || !IsName(f.To) {
			return fmt.Errorf("the flow from %s to %s has an end whose name is none there", quote(f.From), quote(f.To))
		}
	}
	return nil
}

func encodableTask(t *net.Task) error {
	switch {
	case !IsName(t.Name):
		return errors.New("has a name that is none there")
	case t.Kind > net.Composite || t.Join > net.Or || t.Split > net.Or:
		return errors.New("has a kind, a join or a split that does not exist")
	case t.Kind == net.Composite && len(t.Of) == 0:
		return errors.New("is composite and runs no workflow")
	case t.Kind != net.Composite && len(t.Of) > 0:
		return errors.New("runs workflows and is not composite")
	}
	for _, name := range t.Of {
		if !IsName(name) {
			return fmt.Errorf("runs %s, which is no name there", quote(name))
		}
	}
	for _, name := range t.Cancels {
		from, to, implicit := strings.Cut(name, "->")
		if !IsName(from) || implicit && !IsName(to) {
			return fmt.Errorf("cancels %s, which is no name there", quote(name))
		}
	}
	return nil
}
