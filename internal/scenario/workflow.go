package scenario

import (
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/net"
)

// Workflow is one workflow of a text: its net, and what the notation says beyond the net.
type Workflow struct {
	Def   *net.Definition
	Tasks []TaskOptions // by task, in the order of Def.Tasks

	// Missing are the cancellation regions whose owner is no task of this workflow, so Def cannot have them.
	Missing []Region
}

// Region is the cancellation region of an owner that is not a task.
type Region struct {
	Owner   string
	Members []string
	Pos     net.Pos
}

// Problems returns what [net.Definition.Check] cannot see because the definition does not hold it: an unknown-name for
// the owner of each such region, in the order of the lines.
func (w *Workflow) Problems() []net.Problem {
	var problems []net.Problem
	for _, s := range w.Missing {
		problems = append(problems, net.Problem{
			Code:    net.UnknownName,
			Subject: s.Owner,
			Text:    fmt.Sprintf("a cancel line names %q, which is no task of workflow %q", s.Owner, w.Def.Name),
			Pos:     s.Pos,
			Other:   w.Def.Pos,
		})
	}
	return problems
}

// TaskOptions is what the notation says of a task beyond its net. Which fields count depends on the task's kind: those
// of an atomic one are Items, Auto, Policy, Retry and Timeout, those of a composite one Policy and Cases.
type TaskOptions struct {
	Items   int           // work items that an enabling creates; 1 unless said otherwise, and may be 0
	Auto    bool          // every item starts and completes by itself
	Policy  Policy        // what a final item means for the task
	Retry   *RetrySpec    // nil: a failed item is not tried again
	Timeout time.Duration // from the time at which an item is due to its cancellation; 0: none
	Cases   int           // cases that an enabling starts of each workflow; 1 unless said otherwise, and may be 0
}

// DefaultOptions is what a task has that says nothing: one item, or one case of each workflow.
func DefaultOptions() TaskOptions { return TaskOptions{Items: 1, Cases: 1} }

// Policy names one of the policies that the notation knows. The zero value is the default one.
type Policy struct {
	Kind PolicyKind
	K    int // for PolicyQuorum: how many items must complete, at least 1; otherwise 0
}

// PolicyKind says which policy is meant.
type PolicyKind uint8

// The policies of the notation. The zero value is the default one.
const (
	PolicyDefault  PolicyKind = iota // a failed item fails the task
	PolicyContinue                   // the task completes when every item is final, however each one ended
	PolicyIncident                   // a failed item leaves the task open, as an incident
	PolicyQuorum                     // the task completes when K items did, and fails when that is out of reach
)

// String returns the policy as the notation writes it: "default", "continue" or "quorum:2".
func (p Policy) String() string {
	switch p.Kind {
	case PolicyDefault:
		return "default"
	case PolicyContinue:
		return "continue"
	case PolicyIncident:
		return "incident"
	case PolicyQuorum:
		return fmt.Sprintf("quorum:%d", p.K)
	}
	return fmt.Sprintf("policy(%d)", uint8(p.Kind))
}

// RetrySpec is retry=ATTEMPTS:INITIAL. The wait doubles with every attempt: 4:1s waits 1s, 2s and 4s.
type RetrySpec struct {
	Attempts int           // in all, the first included; at least 1
	Initial  time.Duration // the wait before the second attempt; 0 tries again at once
}

// String returns the retry as the notation writes it: "4:1s".
func (r RetrySpec) String() string {
	return fmt.Sprintf("%d:%s", r.Attempts, FormatDuration(r.Initial))
}
