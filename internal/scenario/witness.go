package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// ErrNoWitness says that a finding has no witness: no run shows that a task can never start.
var ErrNoWitness = errors.New("the finding has no witness")

// Witness writes the witness of a finding as a scenario file: the net, the steps of the run as commands, and commands
// whose outputs show the deadlock, the improper completion, or the growing marking. The file runs under [Run] without a
// mismatch.
//
// The file is about the net only. Its tasks have one work item and no policy. A composite task becomes an ordinary
// task, since its child cases are verified separately. So does a routing task that the engine would not execute exactly
// as in the run, because it has a choice or because its order matters. Comments in the file say so.
//
// The error is [ErrNoWitness], or says what the notation cannot express, such as a name.
func Witness(def *net.Definition, f verify.Finding) ([]byte, error) {
	if f.Witness == nil {
		return nil, ErrNoWitness
	}
	compiled, err := net.Compile(def)
	if err != nil {
		return nil, err
	}
	w := &witness{finding: f}
	w.workflow(compiled)
	return w.write(f.Witness.Steps, nil)
}

// witness is a scenario file that is being written.
type witness struct {
	strings.Builder
	finding verify.Finding
	def     *net.Definition
	remarks []string
	play    *player
	hides   bool // the workflow has a task that the net does not have, so enabled tasks are not shown
}

// workflow returns the workflow of the file: the net, with ordinary tasks instead of those that the engine would
// execute differently.
func (w *witness) workflow(n *net.Net) {
	d := *n.Definition()
	d.Tasks = slices.Clone(d.Tasks)
	for i := range d.Tasks {
		t := &d.Tasks[i]
		switch {
		case t.Kind == net.Composite:
			w.remark("%s is a composite task of %s; here it is a task", t.Name, strings.Join(t.Of, ", "))
			t.Of = nil
		case t.Kind == net.Routing && !w.runsByItself(n, net.TaskID(i)):
			w.remark("%s is a routing task; here it is a task, so that the run can say when it acts", t.Name)
		default:
			continue
		}
		t.Kind = net.Atomic
	}
	w.def = &d
}

func (w *witness) remark(format string, args ...any) {
	w.remarks = append(w.remarks, fmt.Sprintf(format, args...))
}

// runsByItself reports whether the engine can execute a routing task as in the run: it has no choice, no other task
// uses its tokens or depends on when they move, it does not end the case, and it is not still to run at the end.
func (w *witness) runsByItself(n *net.Net, t net.TaskID) bool {
	for u := range net.TaskID(n.NumTasks()) {
		tasks, conditions := n.Region(u)
		if len(tasks)+len(conditions) > 0 || n.Task(u).Join == net.Or && len(n.Inputs(u)) > 1 {
			return false
		}
	}
	chooses := n.Task(t).Split != net.And && len(n.Outputs(t)) > 1
	ends := slices.Contains(n.Outputs(t), n.End())
	shares := len(n.PrivateInputs(t)) < len(n.Inputs(t))
	left := slices.ContainsFunc(w.finding.Witness.Marking, func(m verify.Tokens) bool {
		c, known := n.ConditionByName(m.Condition)
		return known && slices.Contains(n.Inputs(t), c)
	})
	return !chooses && !ends && !shares && !left
}

// write writes the file: steps before those of the finding, if there are any, then those of the finding.
func (w *witness) write(steps, before []verify.Step) ([]byte, error) {
	if err := w.checkNames(); err != nil {
		return nil, err
	}
	n, err := net.Compile(w.def)
	if err != nil {
		return nil, fmt.Errorf("no scenario can be written of the net: %w", err)
	}
	w.play = newPlayer(n)
	w.head()
	for _, s := range slices.Concat(before, steps) {
		if err := w.step(s); err != nil {
			return nil, fmt.Errorf("the run of %s in %s cannot be written: %w", w.finding, w.def.Name, err)
		}
	}
	if err := w.conclude(steps); err != nil {
		return nil, err
	}
	return []byte(w.String()), nil
}

// checkNames checks that the notation can express all names. An implicit condition has the names of its tasks.
func (w *witness) checkNames() error {
	names := []string{w.def.Name}
	for _, c := range w.def.Conditions {
		names = append(names, c.Name)
	}
	for _, t := range w.def.Tasks {
		names = append(names, t.Name)
	}
	for _, name := range names {
		if !IsName(name) {
			return fmt.Errorf("no scenario can be written of the net: %s is not a name in the notation; rename it to "+
				"letters, digits, _ and -", quote(name))
		}
	}
	return nil
}

func (w *witness) head() {
	f := w.finding
	w.comment("%s: %s", f, f.Text)
	if f.Witness.Long {
		w.comment("The run is not known to be a shortest one.")
	}
	for _, r := range w.remarks {
		w.comment("%s", r)
	}
	w.WriteString("\ndefine\n" + Format([]*Workflow{{Def: w.def}}) + "----\nok\n\n")
	w.command("start "+w.def.Name, "ok")
}

func (w *witness) comment(format string, args ...any) {
	text := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	const width = 110
	for len(text) > width && strings.Contains(text[:width], " ") {
		at := strings.LastIndexByte(text[:width], ' ')
		w.WriteString("# " + text[:at] + "\n")
		text = text[at+1:]
	}
	w.WriteString("# " + text + "\n")
}

func (w *witness) command(line string, output ...string) {
	w.WriteString(line + "\n" + separator + "\n" + strings.Join(output, "\n") + "\n\n")
}

// step writes the command of a step, unless the engine executes it.
func (w *witness) step(s verify.Step) error {
	t, known := w.play.n.TaskByName(s.Task)
	if known && w.play.n.Task(t).Kind == net.Routing {
		return nil
	}
	if err := w.play.step(s); err != nil {
		return err
	}
	verb := [...]Verb{verify.Whole: VerbDo, verify.Starts: VerbItemStart, verify.Completes: VerbItemComplete}[s.Moment]
	line := string(verb) + " " + s.Task
	if len(s.Outputs) > 0 {
		line += " to=" + strings.Join(s.Outputs, ",")
	}
	w.command(line, "ok")
	return nil
}

// conclude writes the commands that show the finding.
func (w *witness) conclude(steps []verify.Step) error {
	if err := w.agrees(); err != nil {
		return err
	}
	switch w.finding.Code {
	case verify.ImproperCompletion:
		w.comment("The case is over, and work is left over.")
		w.command("show case", "completed")
		w.command("show marking", w.play.marked()...)
		for _, task := range w.finding.Witness.Busy {
			w.comment("%s had started, and the end of the case cut it off.", task)
			w.command("item complete "+task, "error: not-found")
		}
	case verify.NoOptionToComplete:
		w.comment("No way leads to the end any more.")
		w.command("show case", "started")
		w.command("show marking", w.play.marked()...)
		if !w.hides {
			w.command("show enabled", w.play.active()...)
		}
	default:
		w.command("show marking", w.play.marked()...)
		return w.repeat(steps)
	}
	return nil
}

// repeat writes the loop of an unbounded net once more.
func (w *witness) repeat(steps []verify.Step) error {
	rounds := w.finding.Witness.Repeats
	if rounds == 0 {
		return nil
	}
	w.comment("The same steps once more, and %q has more tokens again.", w.finding.Subject)
	for _, s := range steps[len(steps)-rounds:] {
		if err := w.step(s); err != nil {
			return err
		}
	}
	w.command("show marking", w.play.marked()...)
	return nil
}

// agrees compares the state after the run with the finding.
func (w *witness) agrees() error {
	for _, m := range w.finding.Witness.Marking {
		c, known := w.play.n.ConditionByName(m.Condition)
		if !known || int(w.play.marking[c]) != m.Count {
			return fmt.Errorf("the run of %s in %s does not lead to %d tokens in %q",
				w.finding, w.def.Name, m.Count, m.Condition)
		}
	}
	for _, task := range w.finding.Witness.Busy {
		if t, known := w.play.n.TaskByName(task); !known || !w.play.busy.Has(int(t)) {
			return fmt.Errorf("the run of %s in %s does not leave %q busy", w.finding, w.def.Name, task)
		}
	}
	return nil
}
