package workitem

import "fmt"

// Tally counts the items of one activation by state. An item that has a successor is counted only in Retried,
// since the successor counts in its place.
type Tally struct {
	Initialized int
	Started     int
	Completed   int
	Failed      int
	Canceled    int
	Retried     int
}

// Live returns the number of live items.
func (t Tally) Live() int { return t.Initialized + t.Started }

// Total returns the number of items without those that were replaced.
func (t Tally) Total() int { return t.Live() + t.Completed + t.Failed + t.Canceled }

// Add counts one item.
func (t *Tally) Add(s State, retried bool) { t.add(s, retried, 1) }

// Remove reverses Add.
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

// Outcome is the input of a policy: the item that has just reached a final state, and the counts of the activation.
// For a composite task the items are its child cases. Item is nil when the task has just started, and for child
// cases.
type Outcome struct {
	Item  *Item
	State State // the final state of the item; None when the task has just started
	Tally Tally
}

// Verdict is the decision of a policy.
type Verdict uint8

// The verdicts. The zero value lets the task continue.
const (
	Continue     Verdict = iota
	CompleteTask         // the task completes, and its live items are canceled
	FailTask             // the task fails, and its case with it
	HoldTask             // the task stays open instead of failing, as an incident for a person to decide
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
	demand  string // what a task needs that is not failed: "2 are needed"; "" if unknown
	wrong   string // why it cannot be used; "" if it can
}

// NewPolicy returns a policy with a function. The name is part of the workflow's fingerprint, so give a changed
// function a new name. An error rolls the command back.
func NewPolicy(name string, decide func(Outcome) (Verdict, error)) Policy {
	if decide == nil {
		return Policy{name: name, wrong: "it has no function"}
	}
	return Policy{name: name, decide: decide}
}

// Problem returns why the policy is invalid, such as a quorum of 0; "" if it is valid.
func (p Policy) Problem() string { return p.wrong }

// Name returns the policy's name, as the definition stores it: "default", "quorum:2".
func (p Policy) Name() string {
	if p.decide == nil {
		return "default"
	}
	return p.name
}

// BuiltIn reports whether the policy is one of this package, which cannot fail or block.
func (p Policy) BuiltIn() bool { return p.decide == nil || p.builtIn }

// Demand returns what the items of a task have to reach, in words: "2 are needed". It is "" for the default policy, which fails a task with
// its first failed item, and for policies with a function.
func (p Policy) Demand() string { return p.demand }

// Decide returns the verdict on an outcome.
func (p Policy) Decide(o Outcome) (Verdict, error) {
	if p.decide == nil {
		return decideDefault(o), nil
	}
	return p.decide(o)
}

// Default completes the task when every item is final, and fails it as soon as an item has failed without a successor.
// Canceled items count as final: canceling every item completes the task.
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

// ContinueOnFailure never fails the task: it completes when every item is final, in whatever state.
func ContinueOnFailure() Policy {
	return pure("continue", func(o Outcome) Verdict {
		if o.State.Final() && o.Tally.Live() == 0 {
			return CompleteTask
		}
		return Continue
	})
}

// Quorum completes the task when k items have completed, and cancels the live ones; it fails the task when there are
// too few live items left to reach k.
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
	p.demand = fmt.Sprintf("%d are needed", k)
	if k == 1 {
		p.demand = "1 is needed"
	}
	if k < 1 {
		p.wrong = "use a quorum of 1 or more"
	}
	return p
}

// Threshold tolerates up to the given number of failures: one more fails the task; otherwise it completes when every
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
	p.demand = fmt.Sprintf("at most %d may fail", failures)
	if failures < 0 {
		p.wrong = "bear 0 failures or more"
	}
	return p
}

// All requires that every item completes: an item that fails or is canceled without a successor fails the
// task.
func All() Policy {
	p := pure("all", func(o Outcome) Verdict {
		switch {
		case o.Tally.Failed+o.Tally.Canceled > 0:
			return FailTask
		case o.State.Final() && o.Tally.Live() == 0:
			return CompleteTask
		}
		return Continue
	})
	p.demand = "all are needed"
	return p
}

func pure(name string, decide func(Outcome) Verdict) Policy {
	return Policy{name: name, builtIn: true, decide: func(o Outcome) (Verdict, error) { return decide(o), nil }}
}

// Incident keeps a task open that the given policy would fail: the failed item is an incident until a person retries it, skips
// it or gives it up. The rest of the case continues.
func Incident(p Policy) Policy {
	name := "incident"
	if p.decide != nil {
		name += ":" + p.name
	}
	return Policy{name: name, builtIn: p.BuiltIn(), demand: p.demand, wrong: p.wrong, decide: func(o Outcome) (Verdict, error) {
		v, err := p.Decide(o)
		if v == FailTask {
			v = HoldTask
		}
		return v, err
	}}
}
