// Package check implements "tasq check": it verifies the nets of model files, and reports the findings as text, as JSON, and as
// SARIF for tools that show findings beside the source.
//
//	err := check.Run(ctx, check.Files("models.tar.gz"), check.Options{}, func(f *check.File) error { ... })
//
// It checks files of every format that package model reads, and whole folders and archives of them:
//
//	Files, Reader ──▶ model.Read ──▶ net/verify ──▶ File ──▶ Text, JSON, SARIF
//	entries           nets           findings               or Verdicts: compared with a list of expected ones
//
// Each net is verified by itself; a composite task in it counts as a task. Verification has budgets of states, time and memory
// ([Options]), and a net that exhausts one is reported as unknown, not as sound. A file that cannot be read is a result of its
// own, and does not stop the others. [Explain] documents every code with an example that has it.
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

// Verdict is what there is to say of a net or a file, the better the lower. The zero value is Sound.
type Verdict uint8

// The verdicts. Of several the worst counts, which is the last.
const (
	Sound       Verdict = iota // every case can complete, and properly
	WeaklySound                // so it is, and some task can never start
	Unknown                    // the budget ran out
	Unsound                    // something is wrong with the net
	IllFormed                  // it is no net that could be verified
	Unreadable                 // the file cannot be read
)

// String returns "sound", "weakly sound", "unknown", "unsound", "not well-formed" or "unreadable".
func (v Verdict) String() string {
	return [...]string{"sound", "weakly sound", "unknown", "unsound", "not well-formed", "unreadable"}[min(v, Unreadable)]
}

// ExitCode is what the command ends with: 0 for a net that is sound or weakly so, 1 for one that is unsound, 2 for what
// cannot be read or is not well-formed, 3 for what is not decided.
func (v Verdict) ExitCode() int {
	return [...]int{Sound: 0, WeaklySound: 0, Unknown: 3, Unsound: 1, IllFormed: 2, Unreadable: 2}[min(v, Unreadable)]
}

// Options bounds verification. The zero value bounds it by states alone.
type Options struct {
	States  int              // states that one search may look at; see [verify.Options]
	Memory  int              // bytes that one search may take; see there too
	Time    time.Duration    // for one net, measured by Now; 0 for no bound
	Now     func() time.Time // the clock; nil for no bound
	Silence []net.Code       // warnings that are not wanted
}

// File is a file that was checked.
type File struct {
	Name   string // as it was found; of a file in an archive, the archive's name comes first
	Format model.Format
	Nets   []Net
	Notes  model.Report // what came across differently; those with a code of [NoteCodes] are warnings too
	// Err is why the file cannot be read; nil if it can. It is a [*model.Error], a [scenario.SyntaxErrors], or the file
	// system's.
	Err error
	// Passed says that the file was met in a folder or archive, among models, and is skipped: it is no model at all, or
	// the file system refuses it. Err says why.
	Passed bool
	// Partial says that the nets lack something that stands in the file, so that every verdict is about the part that was
	// read. Notes say what is missing.
	Partial bool
	// Defined says that it is no file, but a workflow of a program or of a database.
	Defined bool

	silence []net.Code
}

// Net is one net of a file, with what verification says of it.
type Net struct {
	Name     string
	Label    string // the name for people; "" if there is none
	Pos      net.Pos
	Problems []net.Problem // what makes it not well-formed; then there is no report
	Report   verify.Report
	Allowed  []net.Code // findings that its definition allows; nil for files

	def   *net.Definition
	petri *net.Petri
}

// Verdict is the verdict on the net, whatever is allowed.
func (n *Net) Verdict() Verdict {
	if len(n.Problems) > 0 {
		return IllFormed
	}
	return map[verify.Verdict]Verdict{
		verify.Sound: Sound, verify.WeaklySound: WeaklySound, verify.Unsound: Unsound, verify.Unknown: Unknown,
	}[n.Report.Verdict]
}

// Outcome is the verdict that counts for the exit code: findings that are allowed do not.
func (n *Net) Outcome() Verdict {
	if v := n.Verdict(); v != Unsound || slices.ContainsFunc(n.Report.Findings, n.counts) {
		return v
	}
	return Sound
}

func (n *Net) counts(f verify.Finding) bool { return !slices.Contains(n.Allowed, f.Code) }

// Outcome is the worst of the nets' outcomes.
func (f *File) Outcome() Verdict { return f.worst((*Net).Outcome) }

// Verdict is the worst of the nets' verdicts.
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
			f.Nets[i].dropInvented(read.Nets[i].IDs, o)
		}
	}
	for i := range read.Collaborations {
		n := checkNet(&read.Collaborations[i], nil, o)
		if len(n.Problems) > 0 && f.Verdict() == IllFormed {
			continue // they are those of the pools
		}
		n.dropInvented(read.Collaborations[i].IDs, o)
		n.Report.Warnings = nil // they are those of the pools
		f.Nets = append(f.Nets, n)
	}
	return f
}

// Definition verifies a workflow that is no file: one of a program, or of a database.
func Definition(d *net.Definition, allowed []net.Code, o Options) *File {
	n := checkNet(&model.Net{Name: d.Name, Definition: d}, nil, o)
	n.Allowed = allowed
	return &File{Name: cmp.Or(d.Pos.File, d.Name), Nets: []Net{n}, Defined: true}
}

// across holds what is wrong between the workflows of a file, by its place: a name that two have, a composite task of
// a workflow that is not there or that runs itself again.
type across map[net.Pos][]net.Problem

func problemsAcross(f *model.File) across {
	all := make(across)
	for _, p := range net.CheckAll(f.Definitions()) {
		all[p.Pos] = append(all[p.Pos], p)
	}
	return all
}

// of lists the problems of one workflow, each once: those where it stands, and those where its tasks do.
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

// checkNet verifies one net: the plain net where there is one, for that is what stands in the file, else the definition.
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
	// A cycle of routing tasks does not keep a net from being verified, and is a warning of that.
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

// ErrNoWitness says that no run shows the finding.
var ErrNoWitness = scenario.ErrNoWitness

// Scenario writes the run that shows a finding of the net as a scenario file. The error is [ErrNoWitness], or says what
// keeps the net from being written down.
func (n *Net) Scenario(f verify.Finding) ([]byte, error) {
	if n.petri != nil {
		return scenario.WitnessPetri(n.petri, f)
	}
	return scenario.Witness(n.def, f)
}

// place finds where a task or transition was declared; the zero place if there is none of that name.
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
