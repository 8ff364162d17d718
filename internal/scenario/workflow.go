package scenario

import (
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/net"
)

// Workflow is one workflow of a text: its net, and the options of its tasks.
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

// Problems returns the problems that [net.Definition.Check] does not know: an unknown-name for the owner of each region
// in Missing, in the order of the lines.
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

// TaskOptions are the options of a task. An atomic task uses Items, Auto, Policy, Retry and Timeout, a composite one
// Policy and Cases.
type TaskOptions struct {
	Items   int           // initial work items of an activation; default 1, may be 0
	Auto    bool          // every item starts and completes automatically
	Policy  Policy        // what the end of an item means for the task
	Retry   *RetrySpec    // nil: a failed item is not retried
	Timeout time.Duration // from the time at which an item is due to its cancellation; 0: none
	Cases   int           // initial cases of an activation for each workflow; default 1, may be 0
}

// DefaultOptions are the options of a task without attributes: one item, or one case of each workflow.
func DefaultOptions() TaskOptions { return TaskOptions{Items: 1, Cases: 1} }

// Policy is a policy of the notation. The zero value is the default one.
type Policy struct {
	Kind PolicyKind
	K    int // for PolicyQuorum: the number of items that must complete, at least 1; otherwise 0
}

// PolicyKind is the kind of a policy.
type PolicyKind uint8

// The policies of the notation. The zero value is the default one.
const (
	PolicyDefault  PolicyKind = iota // a failed item fails the task
	PolicyContinue                   // the task completes when every item is final, whatever their states
	PolicyIncident                   // a failed item leaves the task open, as an incident
	PolicyQuorum                     // the task completes when K items have completed, and fails when that is no longer possible
)

// String returns the policy in the notation: "default", "continue" or "quorum:2".
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
	Attempts int           // including the first; at least 1
	Initial  time.Duration // before the second attempt; 0 retries at once
}

// String returns the retry in the notation: "4:1s".
func (r RetrySpec) String() string {
	return fmt.Sprintf("%d:%s", r.Attempts, FormatDuration(r.Initial))
}
