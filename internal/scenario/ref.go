package scenario

import (
	"fmt"
	"strings"
)

// ItemRef identifies a work item, or a child case of a case: "B.1.3" is the third one of B's first activation. "B"
// alone is the only item of B that is not final.
type ItemRef struct {
	Task       string
	Generation int  // of the task, from 1; 0 in a bare reference
	N          int  // within the generation, from 1; 0 in a bare reference
	Bare       bool // the task alone was named
}

// ParseItemRef parses a reference. Numbers have no leading zeros, so each item has one name. The error is a
// [*SyntaxError] without a position. A number 0 is valid, and identifies no item.
func ParseItemRef(s string) (ItemRef, error) {
	task, numbers, dotted := strings.Cut(s, ".")
	if IsName(task) && !dotted {
		return ItemRef{Task: task, Bare: true}, nil
	}
	first, second, _ := strings.Cut(numbers, ".")
	generation, ok1 := parseOrdinal(first)
	n, ok2 := parseOrdinal(second)
	if !IsName(task) || !ok1 || !ok2 {
		return ItemRef{}, syntaxf("%s is not a work item; expected TASK or TASK.GENERATION.N", quote(s))
	}
	return ItemRef{Task: task, Generation: generation, N: n}, nil
}

// String returns the reference in the form that ParseItemRef parses.
func (r ItemRef) String() string {
	if r.Bare {
		return r.Task
	}
	return fmt.Sprintf("%s.%d.%d", r.Task, r.Generation, r.N)
}

func parseOrdinal(s string) (int, bool) {
	n, ok := parseNumber(s)
	return n, ok && (s[0] != '0' || len(s) == 1)
}

// CasePath identifies a case by the path from its root: "case/S.1.2/T.1.1" is a case of T in the second case of S in
// the root case "case". The zero value is the case that was started last.
type CasePath struct {
	Root  string
	Steps []ItemRef // none of them bare
}

// ParseCasePath parses a path. The error is a [*SyntaxError] without a position.
func ParseCasePath(s string) (CasePath, error) {
	root, rest, more := strings.Cut(s, "/")
	if !IsName(root) {
		return CasePath{}, syntaxf("%s is not the path of a case; expected one like case/S.1.2", quote(s))
	}
	p := CasePath{Root: root}
	for more {
		var step string
		step, rest, more = strings.Cut(rest, "/")
		ref, err := ParseItemRef(step)
		if err != nil || ref.Bare {
			return CasePath{}, syntaxf("%s is not a child case; expected TASK.GENERATION.N", quote(step))
		}
		p.Steps = append(p.Steps, ref)
	}
	return p, nil
}

// IsZero reports whether the path is empty.
func (p CasePath) IsZero() bool { return p.Root == "" }

// String returns the path in the form that ParseCasePath parses; "" for the zero value.
func (p CasePath) String() string {
	var b strings.Builder
	b.WriteString(p.Root)
	for _, s := range p.Steps {
		b.WriteString("/" + s.String())
	}
	return b.String()
}
