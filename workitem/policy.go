package workitem

import "fmt"

// Tally counts the items of one activation by state. An item that has a successor is counted in Retried only: its
// lineage goes on in the successor.
type Tally struct {
	Initialized int
	Started     int
	Completed   int
	Failed      int
	Canceled    int
	Retried     int
}

// Live counts the items that are still to be done.
func (t Tally) Live() int { return t.Initialized + t.Started }

// Total counts the lineages: every item but those that were replaced.
func (t Tally) Total() int { return t.Live() + t.Completed + t.Failed + t.Canceled }

// Add counts one item.
func (t *Tally) Add(s State, retried bool) { t.add(s, retried, 1) }

// Remove takes back what Add counted.
func (t *Tally) Remove(s State, retried bool) { t.add(s, retried, -1) }

func (t *Tally) add(s State, retried bool, n int) {
	switch {
	case retried:
		t.Retried += n
	case s == Initialized:
		t.Initialized += n
	case s == Started:
		t.Started += n
	case s == Completed:
		t.Completed += n
	case s == Failed:
		t.Failed += n
	case s == Canceled:
		t.Canceled += n
	}
}

// Outcome is what a policy judges: the item that has just reached a final state, and how the activation stands. For a
// composite task the items are its child cases. Item is nil when a task has just started, and for child cases.
type Outcome struct {
	Item  *Item
	State State // the final state that was reached; None when the task has just started
	Tally Tally
}

// Verdict is what an outcome means for the task.
type Verdict uint8

// The verdicts. The zero value lets the task go on.
const (
	Continue     Verdict = iota
	CompleteTask         // the task completes, and its live items are canceled
	FailTask             // the task fails, and its case with it
	HoldTask             // the task would fail, and stays open instead, as an incident that a person decides
)

// String returns the word for the verdict.
func (v Verdict) String() string {
	switch v {
	case Continue:
		return "continue"
	case CompleteTask:
		return "complete"
	case FailTask:
		return "fail"
	case HoldTask:
		return "hold"
	}
	return fmt.Sprintf("verdict(%d)", uint8(v))
}

// Policy says what an item's final state means for its task. The zero value is [Default].
type Policy struct {
	name    string
	decide  func(Outcome) (Verdict, error)
	builtIn bool
	wrong   string // why it cannot be used; "" if it can
}

// NewPolicy makes a policy of a function. The name is part of the workflow's fingerprint, so give a changed rule a new
// one. An error rolls the command back.
func NewPolicy(name string, decide func(Outcome) (Verdict, error)) Policy {
	if decide == nil {
		return Policy{name: name, wrong: "it has no function"}
	}
	return Policy{name: name, decide: decide}
}

// Problem says why the policy cannot be used, such as a quorum of none; "" if it can.
func (p Policy) Problem() string { return p.wrong }

// Name returns the policy's name, as the definition stores it: "default", "quorum:2".
func (p Policy) Name() string {
	if p.decide == nil {
		return "default"
	}
	return p.name
}

// BuiltIn reports whether the policy is one of this package's, which neither fails nor takes time.
func (p Policy) BuiltIn() bool { return p.decide == nil || p.builtIn }

// Decide judges an outcome.
func (p Policy) Decide(o Outcome) (Verdict, error) {
	if p.decide == nil {
		return decideDefault(o), nil
	}
	return p.decide(o)
}

// Default completes the task when every item is final, and fails it as soon as one failed without a successor. Canceled
// items count as done: canceling every item completes the task.
func Default() Policy { return Policy{} }

func decideDefault(o Outcome) Verdict {
	switch {
	case o.Tally.Failed > 0:
		return FailTask
	case o.State.Final() && o.Tally.Live() == 0:
		return CompleteTask
	}
	return Continue
}

// ContinueOnFailure never fails the task: it completes when every item is final, however each one ended.
func ContinueOnFailure() Policy {
	return pure("continue", func(o Outcome) Verdict {
		if o.State.Final() && o.Tally.Live() == 0 {
			return CompleteTask
		}
		return Continue
	})
}

// Quorum completes the task when k items completed, and cancels the live ones; it fails the task when the live ones can
// no longer bring the number to k.
func Quorum(k int) Policy {
	p := pure(fmt.Sprintf("quorum:%d", k), func(o Outcome) Verdict {
		switch {
		case o.State.Final() && o.Tally.Completed >= k:
			return CompleteTask
		case o.State.Final() && o.Tally.Completed+o.Tally.Live() < k:
			return FailTask
		}
		return Continue
	})
	if k < 1 {
		p.wrong = "use a quorum of 1 or more"
	}
	return p
}

// Threshold bears up to the given number of failures: one more fails the task, and otherwise it completes when every
// item is final.
func Threshold(failures int) Policy {
	p := pure(fmt.Sprintf("threshold:%d", failures), func(o Outcome) Verdict {
		switch {
		case o.Tally.Failed > failures:
			return FailTask
		case o.State.Final() && o.Tally.Live() == 0:
			return CompleteTask
		}
		return Continue
	})
	if failures < 0 {
		p.wrong = "bear 0 failures or more"
	}
	return p
}

// All wants every item completed: one that failed or was canceled without a successor fails the task.
func All() Policy {
	return pure("all", func(o Outcome) Verdict {
		switch {
		case o.Tally.Failed+o.Tally.Canceled > 0:
			return FailTask
		case o.State.Final() && o.Tally.Live() == 0:
			return CompleteTask
		}
		return Continue
	})
}

func pure(name string, decide func(Outcome) Verdict) Policy {
	return Policy{name: name, builtIn: true, decide: func(o Outcome) (Verdict, error) { return decide(o), nil }}
}

// Incident leaves a task open that the given policy would fail: what failed is an incident, until a person has it tried again,
// skips it or gives it up. The case goes on with all that does not depend on it.
func Incident(p Policy) Policy {
	name := "incident"
	if p.decide != nil {
		name += ":" + p.name
	}
	return Policy{name: name, builtIn: p.BuiltIn(), wrong: p.wrong, decide: func(o Outcome) (Verdict, error) {
		v, err := p.Decide(o)
		if v == FailTask {
			v = HoldTask
		}
		return v, err
	}}
}
