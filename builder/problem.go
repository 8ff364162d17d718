package builder

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// The codes of problems that only a Go program can have. Those of the net are in package net.
const (
	BadName           net.Code = "bad-name"           // a name that does not match [A-Za-z_][A-Za-z0-9_-]*, or is too long
	NilHandle         net.Code = "nil-handle"         // a node that was not declared
	ForeignHandle     net.Code = "foreign-handle"     // a handle of another builder
	NilFunction       net.Code = "nil-function"       // a function is needed
	AlreadyBuilt      net.Code = "already-built"      // a declaration after Build
	ShortPath         net.Code = "short-path"         // a path of fewer than two nodes
	BadRule           net.Code = "bad-rule"           // a Join or Split that is none of And, Xor, Or
	MissingJoin       net.Code = "missing-join"       // several flows in, and no Join
	MissingSplit      net.Code = "missing-split"      // several flows out, and no Split
	MissingRoute      net.Code = "missing-route"      // a split that does not know where to go
	AmbiguousRoute    net.Code = "ambiguous-route"    // a split whose route is given in two ways
	AmbiguousDefault  net.Code = "ambiguous-default"  // a second Otherwise
	AmbiguousFlow     net.Code = "ambiguous-flow"     // a second condition on one flow
	StrayRoute        net.Code = "stray-route"        // a condition or Route where nothing is chosen
	AmbiguousInput    net.Code = "ambiguous-input"    // both Input and Items
	MissingInput      net.Code = "missing-input"      // no input where the type needs one
	MissingOutput     net.Code = "missing-output"     // an automatic task whose type needs an output
	BadSource         net.Code = "bad-source"         // a source that can have no value where it is read
	BadType           net.Code = "bad-type"           // a type that cannot be a payload
	BadRegion         net.Code = "bad-region"         // a cancellation region of, or with, what cannot be in one
	BadTopic          net.Code = "bad-topic"          // a subscription to what cannot be a topic, or twice
	BadRetry          net.Code = "bad-retry"          // a retry policy that is invalid
	BadIdentity       net.Code = "bad-identity"       // a business key or a label that cannot be
	BadPolicy         net.Code = "bad-policy"         // a policy that cannot be, such as a quorum of none
	BadPriority       net.Code = "bad-priority"       // one that is not within 32 bits
	BadQueue          net.Code = "bad-queue"          // a text that cannot be the name of a queue
	BadVersion        net.Code = "bad-version"        // a text that cannot be a version
	BadLimit          net.Code = "bad-limit"          // a limit that cannot be, or is asked for more than it admits
	BadBatch          net.Code = "bad-batch"          // a batch of fewer than one item
	BadFairKey        net.Code = "bad-fair-key"       // a key of FairBy that is of another input, or missing
	NegativeDuration  net.Code = "negative-duration"  // a time before now
	DuplicateTimer    net.Code = "duplicate-timer"    // two timers of one task with the same name
	DuplicateResult   net.Code = "duplicate-result"   // a second Result
	DuplicateWorkflow net.Code = "duplicate-workflow" // two workflows of one composite task with the same name
	MissingWorkflow   net.Code = "missing-workflow"   // a composite task without a built workflow
	Conflict          net.Code = "conflict"           // settings that contradict each other
	BadProcess        net.Code = "bad-process"        // a command that cannot be run
	BadCode           net.Code = "bad-code"           // AllowUnsound or Silence of a code that there is not
)

// Error lists all problems of a definition that Build rejects, in the order of their positions.
type Error struct {
	Workflow string
	Pos      net.Pos // where the workflow was declared
	Problems []net.Problem
	// Findings are the reasons why the net is unsound; each is among Problems, too. errors.As finds the first one as an
	// [*UnsoundError].
	Findings []verify.Finding
	// Warnings are the warnings of verification, often the cause of a finding.
	Warnings []verify.Finding
	// Net is the net that was verified; nil if other problems prevented verification.
	Net *net.Definition
}

// Error returns every problem on a line of its own. Indented lines below a finding say how to fix it and how to
// allow it; warnings come last.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d problem", e.Workflow, len(e.Problems))
	if len(e.Problems) != 1 {
		b.WriteByte('s')
	}
	for _, p := range e.Problems {
		b.WriteString("\n" + p.String() + e.advice(p))
	}
	for _, w := range e.Warnings {
		b.WriteString("\nwarning: " + problemOf(w, e.Pos).String())
	}
	return b.String()
}

// Unwrap lists the findings as errors.
func (e *Error) Unwrap() []error {
	errs := make([]error, len(e.Findings))
	for i, f := range e.Findings {
		errs[i] = &UnsoundError{Workflow: e.Workflow, Pos: e.Pos, Net: e.Net, Finding: f}
	}
	return errs
}

// problems collects what is wrong.
type problems struct{ found []net.Problem }

func (p *problems) problem(code net.Code, subject string, pos net.Pos, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.found = append(p.found, net.Problem{Code: code, Subject: subject, Pos: pos, Text: text})
}

// at notes a problem of a node, at the place of its declaration.
func (p *problems) at(n *node, code net.Code, format string, args ...any) {
	p.problem(code, n.name, n.pos, format, args...)
}

// other adds the place of the other party to the problem that was noted last.
func (p *problems) other(pos net.Pos) { p.found[len(p.found)-1].Other = pos }

var nameForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// maxName is how many bytes a name has at most: indexes of the stores take several in one entry.
const maxName = 200

func (d *draft) checkName(what, name string, pos net.Pos) {
	switch {
	case len(name) > maxName:
		d.problem(BadName, name[:maxName]+"…", pos, "the name of a %s has %d bytes, and at most %d are allowed", what, len(name), maxName)
	case !nameForm.MatchString(name):
		d.problem(BadName, name, pos, "%q cannot name a %s; use letters, digits, _ and -, and begin with a letter or _",
			name, what)
	}
}

// frozen notes a problem if the workflow is already built.
func (d *draft) frozen(what string, pos net.Pos) {
	if d.def != nil {
		d.problem(AlreadyBuilt, d.name, pos, "%s is declared after Build; workflow %q cannot change any more", what, d.name)
	}
}

// sorted lists problems in the order of their places, each once.
func sorted(problems []net.Problem) []net.Problem {
	slices.SortStableFunc(problems, func(a, b net.Problem) int {
		return cmp.Or(
			cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Code, b.Code), cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Text, b.Text),
		)
	})
	return slices.Compact(problems)
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func compareText(a, b string) int { return cmp.Compare(a, b) }
