// Package check implements "tasq check": it verifies the nets of model files, and reports the findings as text, as
// JSON, and as SARIF for tools that show findings beside the source.
//
//	err := check.Run(ctx, check.Files("models.tar.gz"), check.Options{}, func(f *check.File) error { ... })
//
// It checks files of every format that package model reads, and whole folders and archives of them:
//
//	Files, Reader ──▶ model.Read ──▶ net/verify ──▶ File ──▶ Text, JSON, SARIF
//	entries           nets           findings               or Verdicts: compared with a list of expected ones
//
// Each net is verified by itself; a composite task in it counts as a task. Verification has budgets of states, time and
// memory ([Options]), and a net that exhausts one is reported as unknown, not as sound. A file that cannot be read is a
// result of its own, and does not stop the others. [Explain] documents every code with an example that has it.
package check

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/model"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// Verdict is the result for a net or a file; a lower one is better. The zero value is Sound.
type Verdict uint8

// The verdicts. For several nets, the worst counts, which is the last in this order.
const (
	Sound       Verdict = iota // every case can complete properly
	WeaklySound                // the same, but some task can never start
	Unknown                    // the budget was exhausted
	Unsound                    // something is wrong with the net
	IllFormed                  // not a net that can be verified
	Unreadable                 // the file cannot be read
)

// String returns "sound", "weakly sound", "unknown", "unsound", "not well-formed" or "unreadable".
func (v Verdict) String() string {
	return [...]string{"sound", "weakly sound", "unknown", "unsound", "not well-formed", "unreadable"}[min(v, Unreadable)]
}

// ExitCode returns the exit code of the command: 0 for a net that is sound or weakly sound, 1 for one that is unsound,
// 2 for an unreadable file or a net that is not well-formed, 3 for an unknown verdict.
func (v Verdict) ExitCode() int {
	return [...]int{Sound: 0, WeaklySound: 0, Unknown: 3, Unsound: 1, IllFormed: 2, Unreadable: 2}[min(v, Unreadable)]
}

// Options limits verification. The zero value limits only the number of states.
type Options struct {
	States  int              // maximum number of states of one search; see [verify.Options]
	Memory  int              // maximum memory of one search in bytes; see [verify.Options]
	Time    time.Duration    // for one net, measured by Now; 0 for no limit
	Now     func() time.Time // the clock; nil for no limit
	Silence []net.Code       // warnings to omit
}

// File is a file that was checked.
type File struct {
	Name   string // for a file in an archive, after the name of the archive
	Format model.Format
	Nets   []Net
	Notes  model.Report // what was read differently; notes with a code of [NoteCodes] are warnings too
	// Err is the reason why the file cannot be read; nil if it can. It is a [*model.Error], a [scenario.SyntaxErrors],
	// or an error of the file system.
	Err error
	// Passed means that a file of a folder or archive is skipped: it is not a model, or the file system refuses it. Err
	// has the reason.
	Passed bool
	// Partial means that part of the file is not in the nets, so verdicts are about the part that was read. Notes say
	// what is missing.
	Partial bool
	// Defined means that this is a workflow of a program or a database, not a file.
	Defined bool

	silence []net.Code
}

// Net is one net of a file, with its results.
type Net struct {
	Name     string
	Label    string // the display name; "" if there is none
	Pos      net.Pos
	Problems []net.Problem // if there are any, the net is not well-formed and has no report
	Report   verify.Report
	Allowed  []net.Code // findings that its definition allows; nil for files

	def   *net.Definition
	petri *net.Petri
}

// Verdict returns the verdict on the net, including allowed findings.
func (n *Net) Verdict() Verdict {
	if len(n.Problems) > 0 {
		return IllFormed
	}
	return map[verify.Verdict]Verdict{
		verify.Sound: Sound, verify.WeaklySound: WeaklySound, verify.Unsound: Unsound, verify.Unknown: Unknown,
	}[n.Report.Verdict]
}

// Outcome returns the verdict for the exit code, without allowed findings.
func (n *Net) Outcome() Verdict {
	if v := n.Verdict(); v != Unsound || slices.ContainsFunc(n.Report.Findings, n.counts) {
		return v
	}
	return Sound
}

func (n *Net) counts(f verify.Finding) bool { return !slices.Contains(n.Allowed, f.Code) }

// Outcome returns the worst outcome of the nets.
func (f *File) Outcome() Verdict { return f.worst((*Net).Outcome) }

// Verdict returns the worst verdict of the nets.
func (f *File) Verdict() Verdict { return f.worst((*Net).Verdict) }

func (f *File) worst(of func(*Net) Verdict) Verdict {
	if f.Err != nil {
		return Unreadable
	}
	worst := Sound
	for i := range f.Nets {
		worst = max(worst, of(&f.Nets[i]))
	}
	return worst
}

// Read reads a file and verifies its nets.
func Read(name string, r io.Reader, o Options) *File {
	f := &File{Name: name, silence: o.Silence}
	read, err := model.Read(name, r)
	if err != nil {
		f.Err = err
		return f
	}
	f.Format, f.Notes, f.Partial = read.Format, read.Report, isPartial(read)
	between := problemsAcross(read)
	for i := range read.Nets {
		f.Nets = append(f.Nets, checkNet(&read.Nets[i], between, o))
		if f.Format == model.BPMN {
			f.Nets[i].dropAdded(read.Nets[i].IDs, o)
		}
	}
	for i := range read.Collaborations {
		n := checkNet(&read.Collaborations[i], nil, o)
		if len(n.Problems) > 0 && f.Verdict() == IllFormed {
			continue // they are those of the pools
		}
		n.dropAdded(read.Collaborations[i].IDs, o)
		n.Report.Warnings = nil // they are those of the pools
		f.Nets = append(f.Nets, n)
	}
	return f
}

// Definition verifies a workflow of a program or a database.
func Definition(d *net.Definition, allowed []net.Code, o Options) *File {
	n := checkNet(&model.Net{Name: d.Name, Definition: d}, nil, o)
	n.Allowed = allowed
	return &File{Name: cmp.Or(d.Pos.File, d.Name), Nets: []Net{n}, Defined: true}
}

// across has the problems between the workflows of a file by position: a duplicate name, a composite task whose
// workflow is missing or runs itself.
type across map[net.Pos][]net.Problem

func problemsAcross(f *model.File) across {
	all := make(across)
	for _, p := range net.CheckAll(f.Definitions()) {
		all[p.Pos] = append(all[p.Pos], p)
	}
	return all
}

// of lists the problems of one workflow, each once: those at its position, and those at the positions of its tasks.
func (a across) of(d *net.Definition) []net.Problem {
	if len(a) == 0 {
		return nil
	}
	problems := slices.Clone(a[d.Pos])
	seen := map[net.Pos]bool{d.Pos: true}
	for i := range d.Tasks {
		if at := d.Tasks[i].Pos; !seen[at] {
			seen[at] = true
			problems = append(problems, a[at]...)
		}
	}
	return problems
}

// checkNet verifies one net: the plain net if there is one, since that is the content of the file, else the definition.
func checkNet(m *model.Net, between across, o Options) Net {
	n := Net{Name: m.Name, Label: m.Label, def: m.Definition, petri: m.Petri}
	opts := verify.Options{States: o.States, Memory: o.Memory, Time: o.Time, Now: o.Now, Silence: o.Silence}
	if m.Petri != nil {
		n.Pos = m.Petri.Pos
		n.Report = verify.Petri(m.Petri, opts)
		return n
	}
	n.Pos = m.Definition.Pos
	n.Problems = append(m.Problems(), between.of(m.Definition)...)
	// A cycle of routing tasks does not prevent verification, where it is a warning.
	n.Problems = slices.DeleteFunc(n.Problems, func(p net.Problem) bool { return p.Code == net.RoutingCycle })
	if len(n.Problems) > 0 {
		return n
	}
	compiled, err := net.Compile(m.Definition)
	if refused := (*net.Error)(nil); errors.As(err, &refused) {
		n.Problems = refused.Problems
		return n
	}
	n.Report = verify.Net(compiled, opts)
	return n
}

// ErrNoWitness means that no run shows the finding.
var ErrNoWitness = scenario.ErrNoWitness

// Scenario returns the run that shows a finding of the net as a scenario file. The error is [ErrNoWitness], or the
// reason why the net cannot be written.
func (n *Net) Scenario(f verify.Finding) ([]byte, error) {
	if n.petri != nil {
		return scenario.WitnessPetri(n.petri, f)
	}
	return scenario.Witness(n.def, f)
}

// place returns the position of the declaration of a task or transition; the zero position if there is none with that
// name.
func (n *Net) place(task string) net.Pos {
	if n.petri != nil {
		for i := range n.petri.Transitions {
			if n.petri.Transitions[i].Name == task {
				return n.petri.Transitions[i].Pos
			}
		}
		return net.Pos{}
	}
	for i := range n.def.Tasks {
		if n.def.Tasks[i].Name == task {
			return n.def.Tasks[i].Pos
		}
	}
	return net.Pos{}
}
