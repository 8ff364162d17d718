package scenario

import (
	"fmt"
	"strings"
)

// ItemRef names a work item, or a child case within its parent: "B.1.3" is the third one of B's first activation. "B"
// alone, which only an item can be, means the one item of B that is not final.
type ItemRef struct {
	Task       string
	Generation int  // of the task, from 1; 0 in a bare reference
	N          int  // within the generation, from 1; 0 in a bare reference
	Bare       bool // the task alone was named
}

// ParseItemRef reads a work item, bare or not. Numbers are written without leading zeros, so that an item has one name.
// The error is a [*SyntaxError] without a place. An item of number 0 or beyond is well written, and is not found.
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

// String returns the reference as it was read.
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

// CasePath names a case from its root: "case/S.1.2/T.1.1" is a case of T's in the second case of S's in the root case
// "case". The zero value names none, which a command takes for the last case that was started.
type CasePath struct {
	Root  string
	Steps []ItemRef // none of them bare
}

// ParseCasePath reads a case path. The error is a [*SyntaxError] without a place.
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

// IsZero reports whether no case is named.
func (p CasePath) IsZero() bool { return p.Root == "" }

// String returns the path as it was read, "" for the zero value.
func (p CasePath) String() string {
	var b strings.Builder
	b.WriteString(p.Root)
	for _, s := range p.Steps {
		b.WriteString("/" + s.String())
	}
	return b.String()
}
