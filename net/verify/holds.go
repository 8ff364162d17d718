package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/net"
)

// HoldDeadlock is the code of cases that can deadlock over slots that they hold over several tasks. [Holds] reports it.
const HoldDeadlock net.Code = "hold-deadlock"

// Hold is a number of slots that a case acquires when a task starts, and releases when one of the tasks To has ended.
// The case waits while there are fewer free slots. From and To are tasks of the net of its [Holder].
type Hold struct {
	Limit string
	N     int64
	From  net.TaskID
	To    []net.TaskID // the hold ends with the first of them
	Pos   net.Pos      // where it was declared
}

// Take is a number of slots that each attempt of a task acquires, and releases when it ends. The attempt waits while
// there are fewer free slots.
type Take struct {
	Limit string
	N     int64
	Task  net.TaskID
}

// Holder is a workflow whose cases hold slots. A task that begins several holds acquires them one after the other, in
// the order of the list, and then everything that its attempt needs at once.
type Holder struct {
	Net   *net.Net
	Holds []Hold // at most 64
	Takes []Take
}

// HoldReport is the result of [Holds].
type HoldReport struct {
	Deadlock  *Deadlock // nil if none was found
	Exhausted Limit     // if it is not NoLimit, there may be a deadlock that was not found
	States    int       // the number of explored states
}

// Deadlock is a set of cases each of which waits for slots that the others hold.
type Deadlock struct {
	Cases []StuckCase
	Run   []CaseStep // a run that leads to the deadlock
}

// StuckCase is one case of a [Deadlock], or several in the same state.
type StuckCase struct {
	Workflow string
	Count    int    // the number of cases
	Holds    []Slot // by each of them
	Waits    []Slot // by each of them; none is free
}

// Slot is a number of slots of a limit that a case holds, since a task, or waits for, at a task.
type Slot struct {
	Limit string
	N     int64
	Task  string
	Pos   net.Pos // where the hold was declared; zero for slots of an attempt
}

// CaseStep is a step of one case in the run of a [Deadlock].
type CaseStep struct {
	Case int // from 1, in the order of Deadlock.Cases, each counted Count times
	Step Step
}

// Holds looks for deadlocks over slots among any number of cases of the workflows. capacity has the number of slots of
// each limit; other limits are not considered. A reported deadlock has a run. Decisions that depend on data are free in
// it, as in [Net].
//
// It searches the states of one case alone, in which all slots are free that the case does not hold itself, for states
// in which each move has to wait for slots. Then it looks for a set of such states in which the set itself holds all
// slots that are waited for, and for an order of the steps of their runs in which no more slots are held than there
// are:
//
//	case 1   A ── holds 1 of crane ── B wants 1 of dock  ─┐ held by the other
//	case 2   C ── holds 1 of dock  ── D wants 1 of crane ─┘
//
// Only some of the shortest runs to a state are tried, so a set of states that only longer runs can reach together is
// not found. A composite task counts as one task: what its child cases hold is considered if the net has their tasks in
// its place.
func Holds(workflows []Holder, capacity map[string]int64, opts Options) HoldReport {
	budget := opts.budget(defaultMore)
	rep := HoldReport{}
	held := make(map[string]bool)
	for i := range workflows {
		for _, h := range workflows[i].Holds {
			held[h.Limit] = true
		}
	}
	var stuck []stuckState
	for i := range workflows {
		x := newHoldSearch(&workflows[i], held, capacity)
		found, limit := x.search(budget.States-rep.States, budget.Late)
		rep.States += len(x.nodes)
		rep.Exhausted = max(rep.Exhausted, limit)
		stuck = append(stuck, found...)
	}
	c := holdCombination{stuck: stuck, capacity: capacity, work: maxCombinations, late: budget.Late}
	rep.Deadlock = c.find()
	if rep.Deadlock == nil && c.work <= 0 {
		rep.Exhausted = max(rep.Exhausted, LimitStates)
	}
	return rep
}

// Finding returns a deadlock as a finding.
func (d *Deadlock) Finding() Finding {
	f := Finding{Code: HoldDeadlock, Subject: d.Cases[0].Waits[0].Task}
	var texts []string
	n := 1
	for _, c := range d.Cases {
		who := fmt.Sprintf("case %d of %s", n, c.Workflow)
		holds, waits := "holds", "waits"
		if c.Count > 1 {
			who = fmt.Sprintf("each of the cases %d to %d of %s", n, n+c.Count-1, c.Workflow)
		}
		n += c.Count
		if len(c.Holds) > 0 {
			texts = append(texts, fmt.Sprintf("%s %s %s and %s for %s", who, holds, slots(c.Holds, "since"), waits, slots(c.Waits, "at")))
		} else {
			texts = append(texts, fmt.Sprintf("%s %s for %s", who, waits, slots(c.Waits, "at")))
		}
		for _, s := range slices.Concat(c.Holds, c.Waits) {
			if e := (Element{Name: s.Task, Pos: s.Pos}); !slices.Contains(f.Elements, e) {
				f.Elements = append(f.Elements, e)
			}
		}
	}
	who, fix := "cases can wait for each other", "begin holds in the same order everywhere, or give back the one before the other begins"
	if n == 2 {
		who, fix = "a case can wait for what it holds itself", "raise the limit, or take the sum by one hold"
	}
	f.Text = fmt.Sprintf("%s and never go on: %s", who, strings.Join(texts, "; "))
	if run := d.brief(); run != "" {
		f.Text += "; run: " + run
	}
	f.Fix = fix
	return f
}

// brief returns the run on one line: "case 1: A; case 2: C".
func (d *Deadlock) brief() string {
	var b strings.Builder
	last := 0
	for i, s := range d.Run {
		if i == maxBriefSteps {
			fmt.Fprintf(&b, "; %d steps more", len(d.Run)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		if s.Case != last {
			fmt.Fprintf(&b, "case %d: ", s.Case)
		}
		last = s.Case
		b.WriteString(s.Step.String())
	}
	return b.String()
}

// maxBriefSteps bounds the steps in a text; the deadlock has all of them.
const maxBriefSteps = 40

// slots describes slots: "1 of crane (since load), 2 of dock (since pack)".
func slots(list []Slot, when string) string {
	var texts []string
	for _, s := range list {
		texts = append(texts, fmt.Sprintf("%d of %s (%s %s)", s.N, s.Limit, when, s.Task))
	}
	return strings.Join(texts, ", ")
}

// compareSlots orders slots by limit and task.
func compareSlots(a, b Slot) int {
	return cmp.Or(cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Task, b.Task), cmp.Compare(a.N, b.N))
}
