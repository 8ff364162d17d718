package verify_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// line is a net of tasks one after the other.
func line(name string, tasks ...string) *net.Definition {
	d := &net.Definition{Name: name, Conditions: []net.Condition{{Name: "start", Role: net.Start}, {Name: "end", Role: net.End}}}
	before := "start"
	for _, t := range tasks {
		d.Tasks = append(d.Tasks, net.Task{Name: t})
		d.Flows = append(d.Flows, net.Flow{From: before, To: t})
		before = t
	}
	d.Flows = append(d.Flows, net.Flow{From: before, To: "end"})
	return d
}

// holder compiles a net whose cases hold what is written as "2 crane from A to B"; "1 crane at A" is what an attempt takes.
func holder(d *net.Definition, holds ...string) verify.Holder {
	h := verify.Holder{Net: net.MustCompile(d)}
	task := func(name string) net.TaskID {
		t, ok := h.Net.TaskByName(name)
		if !ok {
			panic(name)
		}
		return t
	}
	for _, text := range holds {
		var n int64
		var limit, from, to string
		if strings.Contains(text, " at ") {
			fmt.Sscanf(text, "%d %s at %s", &n, &limit, &from)
			h.Takes = append(h.Takes, verify.Take{Limit: limit, N: n, Task: task(from)})
			continue
		}
		fmt.Sscanf(text, "%d %s from %s to %s", &n, &limit, &from, &to)
		h.Holds = append(h.Holds, verify.Hold{Limit: limit, N: n, From: task(from), To: []net.TaskID{task(to)}})
	}
	return h
}

func TestHolds(t *testing.T) {
	abc := func(name string, holds ...string) verify.Holder { return holder(line(name, "A", "B", "C"), holds...) }
	for _, test := range []struct {
		name     string
		holders  []verify.Holder
		capacity map[string]int64
		want     string // "" for no deadlock
	}{
		{"the same order", []verify.Holder{abc("one", "1 x from A to C", "1 y from B to C"), abc("two", "1 x from A to B", "1 y from B to C")},
			map[string]int64{"x": 1, "y": 1}, ""},
		{"opposite orders", []verify.Holder{abc("one", "1 x from A to C", "1 y from B to C"), abc("two", "1 y from A to C", "1 x from B to C")},
			map[string]int64{"x": 1, "y": 1},
			"cases can wait for each other and never go on: case 1 of one holds 1 of x (since A) and waits for 1 of y (at B); " +
				"case 2 of two holds 1 of y (since A) and waits for 1 of x (at B); run: case 1: A; case 2: A"},
		{"the first is given back before", []verify.Holder{abc("one", "1 x from A to A", "1 y from B to C"), abc("two", "1 y from A to C", "1 x from B to C")},
			map[string]int64{"x": 1, "y": 1}, ""},
		{"more slots need more cases", []verify.Holder{abc("one", "1 x from A to C", "1 y from B to C"), abc("two", "1 y from A to C", "1 x from B to C")},
			map[string]int64{"x": 3, "y": 2},
			"cases can wait for each other and never go on: each of the cases 1 to 3 of one holds 1 of x (since A) and waits for 1 of y (at B); " +
				"each of the cases 4 to 5 of two holds 1 of y (since A) and waits for 1 of x (at B); " +
				"run: case 1: A; case 2: A; case 3: A; case 4: A; case 5: A"},
		{"two of one limit, one after the other", []verify.Holder{abc("one", "1 x from A to C", "1 x from B to C")}, map[string]int64{"x": 2},
			"cases can wait for each other and never go on: each of the cases 1 to 2 of one holds 1 of x (since A) and waits for 1 of x (at B); " +
				"run: case 1: A; case 2: A"},
		{"two of one limit with one slot", []verify.Holder{abc("one", "1 x from A to C", "1 x from B to C")}, map[string]int64{"x": 1},
			"a case can wait for what it holds itself and never go on: case 1 of one holds 1 of x (since A) and waits for 1 of x (at B); run: case 1: A"},
		{"two of one limit, both in one task", []verify.Holder{abc("one", "2 x from A to C")}, map[string]int64{"x": 3}, ""},
		{"an attempt takes what others hold", []verify.Holder{abc("one", "1 x from A to C", "1 y at B"), abc("two", "1 y from A to C", "1 x at B")},
			map[string]int64{"x": 1, "y": 1},
			"cases can wait for each other and never go on: case 1 of one holds 1 of x (since A) and waits for 1 of y (at B); " +
				"case 2 of two holds 1 of y (since A) and waits for 1 of x (at B); run: case 1: A; case 2: A"},
		{"attempts give back what they take", []verify.Holder{abc("one", "1 x from A to C", "1 y at B"), abc("two", "1 y at A", "1 x at B")},
			map[string]int64{"x": 1, "y": 1}, ""},
		{"no limit", []verify.Holder{abc("one", "1 x from A to C", "1 y from B to C"), abc("two", "1 y from A to C", "1 x from B to C")},
			map[string]int64{"x": 1}, ""},
		{"different cases hold the slots", []verify.Holder{abc("one", "1 x from B to C", "1 z from A to C"), abc("two", "1 x from B to C", "1 w from A to C"),
			abc("three", "1 y from A to C", "1 x from B to C"), abc("four", "1 x from A to B", "1 y from C to C")}, map[string]int64{"x": 2, "y": 1, "z": 1, "w": 1}, ""},
		{"no two of the cases that hold the slots are alike", []verify.Holder{
			holder(line("one", "A", "B", "C", "D"), "1 z from A to D", "1 x from B to D", "1 y from C to D"),
			holder(line("two", "A", "B", "C", "D"), "1 w from A to D", "1 x from B to D", "1 y from C to D"),
			abc("three", "1 y from A to C", "1 x from B to C")}, map[string]int64{"x": 2, "y": 1, "z": 1, "w": 1},
			"cases can wait for each other and never go on: case 1 of one holds 1 of x (since B), 1 of z (since A) and waits for 1 of y (at C); " +
				"case 2 of three holds 1 of y (since A) and waits for 1 of x (at B); case 3 of two holds 1 of w (since A), 1 of x (since B) and waits for 1 of y (at C); " +
				"run: case 1: A; B; case 2: A; case 3: A; B"},
		{"two holds of one task", []verify.Holder{abc("one", "1 x from A to C", "1 y from A to C"), abc("two", "1 y from A to C", "1 x from A to C")},
			map[string]int64{"x": 1, "y": 1},
			"cases can wait for each other and never go on: case 1 of one holds 1 of x (since A) and waits for 1 of y (at A); " +
				"case 2 of two holds 1 of y (since A) and waits for 1 of x (at A)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			rep := verify.Holds(test.holders, test.capacity, verify.Options{})
			require.Equal(t, verify.NoLimit, rep.Exhausted)
			if test.want == "" {
				require.Nil(t, rep.Deadlock)
				return
			}
			require.NotNil(t, rep.Deadlock)
			require.Equal(t, test.want, rep.Deadlock.Finding().Text)
		})
	}
}

// What a branch waits for stops only that branch: the other one gives back what the others wait for.
func TestHoldsOfBranches(t *testing.T) {
	d := line("branches", "A", "B", "C")
	d.Tasks = append(d.Tasks, net.Task{Name: "beside"}, net.Task{Name: "join"})
	d.Flows = slices.DeleteFunc(d.Flows, func(f net.Flow) bool { return f.To == "end" })
	d.Flows = append(d.Flows, net.Flow{From: "A", To: "beside"}, net.Flow{From: "beside", To: "join"}, net.Flow{From: "C", To: "join"},
		net.Flow{From: "join", To: "end"})
	capacity := map[string]int64{"x": 1, "y": 1}
	other := holder(line("other", "A", "B"), "1 y from A to B", "1 x from B to B")
	require.Nil(t, verify.Holds([]verify.Holder{holder(d, "1 x from A to beside", "1 y from B to C"), other}, capacity, verify.Options{}).Deadlock)
	require.NotNil(t, verify.Holds([]verify.Holder{holder(d, "1 x from A to join", "1 y from B to C"), other}, capacity, verify.Options{}).Deadlock)
}

// A task that is withdrawn gives back what it has taken for its start: so a case that has left by the other way does not hold it.
func TestAHoldOfAWithdrawnTaskEnds(t *testing.T) {
	choice := func(toOut ...string) verify.Holder {
		d := line("choice", "A", "B")
		d.Tasks = append(d.Tasks, net.Task{Name: "out"}, net.Task{Name: "last"})
		d.Conditions = append(d.Conditions, net.Condition{Name: "p"})
		d.Flows = []net.Flow{{From: "start", To: "A"}, {From: "A", To: "p"}, {From: "p", To: "B"}, {From: "p", To: "out"}, {From: "B", To: "end"},
			{From: "out", To: "last"}, {From: "last", To: "end"}}
		return holder(d, append(toOut, "1 y from last to last")...)
	}
	capacity := map[string]int64{"x": 1, "y": 1}
	other := holder(line("other", "A", "B"), "1 y from A to B", "1 x from B to B")
	require.Nil(t, verify.Holds([]verify.Holder{choice("1 x from B to B"), other}, capacity, verify.Options{}).Deadlock)
	require.NotNil(t, verify.Holds([]verify.Holder{choice("1 x from out to last"), other}, capacity, verify.Options{}).Deadlock)
}

func TestHoldsRunOut(t *testing.T) {
	rep := verify.Holds([]verify.Holder{holder(line("one", "A", "B", "C"), "1 x from A to C", "1 y from B to C")},
		map[string]int64{"x": 1, "y": 1}, verify.Options{States: 2})
	require.Equal(t, verify.LimitStates, rep.Exhausted)
	require.Nil(t, rep.Deadlock)
}

// What Holds finds in random workflows is what is found by trying all that two and three cases can do together.
func TestHoldsAgreeWithAllThatCasesCanDo(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		capacity := map[string]int64{"x": int64(rapid.IntRange(1, 2).Draw(r, "x")), "y": int64(rapid.IntRange(1, 2).Draw(r, "y")), "z": 1}
		var holders []verify.Holder
		for i := range rapid.IntRange(1, 2).Draw(r, "workflows") {
			holders = append(holders, randomHolder(r, fmt.Sprintf("w%d", i), capacity))
		}
		rep := verify.Holds(holders, capacity, verify.Options{})
		require.Equal(r, verify.NoLimit, rep.Exhausted)
		cases := 0
		if rep.Deadlock != nil {
			for _, c := range rep.Deadlock.Cases {
				cases += c.Count
			}
		}
		if cases > 0 && cases <= 3 {
			requireRun(r, holders, capacity, rep.Deadlock)
		}
		for n := 1; n <= 3; n++ {
			stuck, decided := anyDeadlock(holders, capacity, n)
			if !decided {
				return
			}
			if stuck && rep.Deadlock == nil {
				r.Fatalf("%d cases can wait for each other, and Holds finds nothing", n)
			}
			if !stuck && rep.Deadlock != nil && cases == n {
				r.Fatalf("no %d cases can wait for each other, and Holds finds %s", n, rep.Deadlock.Finding().Text)
			}
		}
	})
}

// requireRun requires that the run of a deadlock is one that the cases can do together, and that none of them can continue after it.
func requireRun(r *rapid.T, holders []verify.Holder, capacity map[string]int64, d *verify.Deadlock) {
	var first together
	for _, c := range d.Cases {
		h := slices.IndexFunc(holders, func(h verify.Holder) bool { return h.Net.Name() == c.Workflow })
		for range c.Count {
			first = append(first, aloneOf(holders, h))
		}
	}
	states := map[string]together{"": first}
	follow := func(who int, allowed func(before, after alone) bool) {
		next := map[string]together{}
		for _, s := range states {
			for _, after := range movesOf(holders, capacity, s, who) {
				if allowed(s[who], after) {
					t := slices.Clone(s)
					t[who] = after
					next[fmt.Sprint(t)] = t
				}
			}
		}
		states = next
	}
	acquires := func(who int) { // none, or any number
		for {
			before := maps.Clone(states)
			follow(who, func(before, after alone) bool { return before.marking == after.marking && before.busy == after.busy })
			maps.Copy(states, before)
			if len(states) == len(before) {
				return
			}
		}
	}
	for _, step := range d.Run {
		i := step.Case - 1
		nt := holders[first[i].h].Net
		t, _ := nt.TaskByName(step.Step.Task)
		acquires(i)
		if step.Step.Moment != verify.Completes {
			follow(i, func(before, after alone) bool { return before.busy[t] == 0 && after.busy[t] == 1 })
		}
		if step.Step.Moment != verify.Starts {
			follow(i, func(before, after alone) bool {
				if before.busy[t] != 1 || after.busy[t] != 0 {
					return false
				}
				for _, name := range step.Step.Outputs {
					if c, _ := nt.Target(t, name); after.marking[c] <= before.marking[c] {
						return false
					}
				}
				return true
			})
		}
	}
	for i := range first {
		acquires(i)
	}
	for _, s := range states {
		stuck := true
		for i := range s {
			stuck = stuck && !s[i].over && len(movesOf(holders, capacity, s, i)) == 0
		}
		if stuck {
			return
		}
	}
	r.Fatalf("the run does not lead there: %s", d.Finding().Text)
}

// randomHolder is a sound net of up to four tasks: in a line, beside each other, or one of them chosen; and some holds and takes.
func randomHolder(r *rapid.T, name string, capacity map[string]int64) verify.Holder {
	d := line(name, "A", "B", "C")
	switch rapid.IntRange(0, 3).Draw(r, "form") {
	case 1: // B and C beside each other
		d.Flows = []net.Flow{{From: "start", To: "A"}, {From: "A", To: "B"}, {From: "A", To: "C"}, {From: "B", To: "D"}, {From: "C", To: "D"}, {From: "D", To: "end"}}
		d.Tasks = append(d.Tasks, net.Task{Name: "D"})
	case 2: // B, or C and D, whichever starts first
		d.Conditions = append(d.Conditions, net.Condition{Name: "p"})
		d.Flows = []net.Flow{{From: "start", To: "A"}, {From: "A", To: "p"}, {From: "p", To: "B"}, {From: "p", To: "C"}, {From: "B", To: "end"}, {From: "C", To: "D"},
			{From: "D", To: "end"}}
		d.Tasks = append(d.Tasks, net.Task{Name: "D"})
	case 3: // B again and again
		d.Conditions = append(d.Conditions, net.Condition{Name: "p"})
		d.Tasks[1].Split = net.Xor
		d.Flows = []net.Flow{{From: "start", To: "A"}, {From: "A", To: "p"}, {From: "p", To: "B"}, {From: "B", To: "p"}, {From: "B", To: "C"}, {From: "C", To: "end"}}
	}
	var texts []string
	begun := map[string]bool{}
	for range rapid.IntRange(1, 3).Draw(r, "holds") {
		limit := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(r, "limit")
		from, to := rapid.IntRange(0, len(d.Tasks)-1).Draw(r, "from"), rapid.IntRange(0, len(d.Tasks)-1).Draw(r, "to")
		n := rapid.Int64Range(1, capacity[limit]).Draw(r, "n")
		if key := d.Tasks[from].Name + limit; begun[key] {
			continue
		} else {
			begun[key] = true
		}
		if rapid.IntRange(0, 3).Draw(r, "take") == 0 {
			texts = append(texts, fmt.Sprintf("%d %s at %s", n, limit, d.Tasks[from].Name))
		} else {
			texts = append(texts, fmt.Sprintf("%d %s from %s to %s", n, limit, d.Tasks[from].Name, d.Tasks[to].Name))
		}
	}
	slices.SortStableFunc(texts, func(a, b string) int { return strings.Compare(strings.Fields(a)[1], strings.Fields(b)[1]) })
	return holder(d, texts...)
}

// together is the state of several cases, each on its own: a slow and simple reading of the rules.
type together []alone

type alone struct {
	h       int
	marking string // one byte for each condition
	busy    string // one byte for each task
	held    string // '0', '1' held, 'f' held and its task has not completed; by hold
	over    bool
}

// aloneOf is a case of a workflow at its start.
func aloneOf(holders []verify.Holder, h int) alone {
	nt := holders[h].Net
	m := make([]byte, nt.NumConditions())
	m[nt.Start()] = 1
	return alone{h: h, marking: string(m), busy: string(make([]byte, nt.NumTasks())), held: strings.Repeat("0", len(holders[h].Holds))}
}

// anyDeadlock reports whether so many cases, of any of the workflows, can come into a state from which none of them does anything and not all are over.
func anyDeadlock(holders []verify.Holder, capacity map[string]int64, n int) (stuck, decided bool) {
	decided = true
	var first func(at int, chosen together) bool
	first = func(at int, chosen together) bool {
		if len(chosen) == n {
			stuck, whole := searchTogether(holders, capacity, chosen)
			decided = decided && whole
			return stuck
		}
		for h := at; h < len(holders); h++ {
			if first(h, append(slices.Clone(chosen), aloneOf(holders, h))) {
				return true
			}
		}
		return false
	}
	stuck = first(0, nil)
	return stuck, stuck || decided
}

// maxTogether bounds the states that are looked at: three cases have too many in some nets.
const maxTogether = 20_000

func searchTogether(holders []verify.Holder, capacity map[string]int64, from together) (stuck, whole bool) {
	seen := map[string]bool{fmt.Sprint(from): true}
	todo := []together{from}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		moved, over := false, true
		for i := range s {
			over = over && s[i].over
			for _, next := range movesOf(holders, capacity, s, i) {
				moved = true
				t := slices.Clone(s)
				t[i] = next
				slices.SortFunc(t, func(a, b alone) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
				if key := fmt.Sprint(t); !seen[key] {
					seen[key] = true
					todo = append(todo, t)
				}
			}
		}
		if !moved && !over {
			return true, true
		}
		if len(seen) > maxTogether {
			return false, false
		}
	}
	return false, true
}

func used(holders []verify.Holder, s together, limit string) (n int64) {
	for _, a := range s {
		for i, h := range holders[a.h].Holds {
			if a.held[i] != '0' && h.Limit == limit {
				n += h.N
			}
		}
		for _, t := range holders[a.h].Takes {
			if a.busy[t.Task] != 0 && t.Limit == limit {
				n += t.N
			}
		}
	}
	return n
}

func movesOf(holders []verify.Holder, capacity map[string]int64, s together, i int) (all []alone) {
	a := s[i]
	h := &holders[a.h]
	if a.over {
		return nil
	}
	m, busy := make(net.Marking, len(a.marking)), net.NewBits(len(a.busy))
	for c := range m {
		m[c] = int32(a.marking[c])
	}
	for t := range a.busy {
		if a.busy[t] != 0 {
			busy.Add(t)
		}
	}
	enabled := func(t net.TaskID) bool { return h.Net.Enabled(t, m, busy).Enabled }
	set := func(text string, at int, b byte) string { return text[:at] + string([]byte{b}) + text[at+1:] }
	for t := range net.TaskID(h.Net.NumTasks()) {
		if a.busy[t] != 0 {
			targets := [][]net.ConditionID{h.Net.Outputs(t)}
			if h.Net.Task(t).Split == net.Xor {
				targets = nil
				for _, c := range h.Net.Outputs(t) {
					targets = append(targets, []net.ConditionID{c})
				}
			}
			for _, into := range targets {
				next := a
				next.busy = set(a.busy, int(t), 0)
				for k, hold := range h.Holds {
					if hold.To[0] == t {
						next.held = set(next.held, k, '0')
					} else if hold.From == t && next.held[k] == 'f' {
						next.held = set(next.held, k, '1')
					}
				}
				for _, c := range into {
					next.marking = set(next.marking, int(c), next.marking[c]+1)
					next.over = next.over || c == h.Net.End()
				}
				if next.over {
					next.held = strings.Repeat("0", len(next.held))
				}
				all = append(all, next)
			}
			continue
		}
		if !enabled(t) {
			continue
		}
		missing := -1
		for k := len(h.Holds) - 1; k >= 0; k-- {
			if h.Holds[k].From == t && a.held[k] == '0' {
				missing = k
			}
		}
		if missing >= 0 {
			if hold := h.Holds[missing]; used(holders, s, hold.Limit)+hold.N <= capacity[hold.Limit] {
				next := a
				next.held = set(a.held, missing, 'f')
				all = append(all, next)
			}
			continue
		}
		free := true
		for _, take := range h.Takes {
			free = free && (take.Task != t || used(holders, s, take.Limit)+take.N <= capacity[take.Limit])
		}
		if !free {
			continue
		}
		next := a
		for _, c := range h.Net.Consumes(nil, t, m) {
			next.marking = set(next.marking, int(c), next.marking[c]-1)
		}
		next.busy = set(a.busy, int(t), 1)
		for k, hold := range h.Holds { // the others of a choice are withdrawn
			if next.held[k] == 'f' && next.busy[hold.From] == 0 {
				after := make(net.Marking, len(m))
				for c := range after {
					after[c] = int32(next.marking[c])
				}
				if !h.Net.Enabled(hold.From, after, busy).Enabled {
					next.held = set(next.held, k, '0')
				}
			}
		}
		all = append(all, next)
	}
	return all
}
