package sqlite_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

var oneTask = net.MustCompile(&net.Definition{
	Name:       "one",
	Conditions: []net.Condition{{Name: "in", Role: net.Start}, {Name: "out", Role: net.End}},
	Tasks:      []net.Task{{Name: "work"}},
	Flows:      []net.Flow{{From: "in", To: "work"}, {From: "work", To: "out"}},
})

var (
	benchInput = json.RawMessage(
		`{"customer":"0197a3c4-0000-7000-8000-000000000000","amount":12.50,"note":"a payload of a hundred bytes"}`,
	)
	benchOutput = json.RawMessage(`{"ok":true,"text":"forty bytes of a result"}`)
)

// driver runs the life of one-item cases: start, claim, complete.
type driver struct {
	ids  *workitem.Generator
	now  time.Time
	live []*life
	next int
}

type life struct {
	tree  *state.Tree
	id    workitem.CaseID
	stage int
}

func newDriver(live int) *driver {
	d := &driver{ids: workitem.NewGenerator(rand.Reader), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	for range live {
		d.live = append(d.live, &life{})
	}
	return d
}

func (d *driver) step(tx store.Tx) error {
	l := d.live[d.next%len(d.live)]
	d.next++
	d.now = d.now.Add(time.Microsecond * 50)
	var events []state.Change
	command := "start one"
	switch l.stage {
	case 0:
		l.id = d.ids.NewCaseID(d.now)
		l.tree = state.NewTree()
		l.tree.Root = l.id
		it := &workitem.Item{ID: d.ids.NewID(d.now), Case: l.id, Task: "work", Generation: 1, Number: 1,
			State: workitem.Initialized, Attempt: 1, Input: benchInput, Created: d.now}
		events = []state.Change{
			&state.CaseOpened{Case: &state.Case{ID: l.id, Root: l.id, Number: 1, Workflow: "one", Fingerprint: "one",
				Net:   oneTask,
				State: state.CaseStarted, Input: benchInput, Created: d.now}},
			&state.TaskMoved{Case: l.id, To: state.TaskEnabled, Generation: 1},
			&state.ItemOpened{Item: it},
			&state.JobOpened{Job: &state.Job{ID: d.ids.NewJobID(d.now), Case: l.id, Root: l.id, Task: "work",
				Generation: 1,
				Item:       it.ID, Kind: state.JobRun, State: state.JobPending, Due: d.now, Created: d.now}},
		}
	case 1:
		c := l.tree.Case(l.id)
		j, it := c.Jobs.Slice()[0], c.Items.Slice()[0]
		command = "job claim"
		events = []state.Change{
			&state.JobMoved{Case: l.id, Job: j.ID, To: state.JobRunning, Due: j.Due, Attempt: 1, Fence: 1,
				Owner: "host/1",
				Lease: d.now.Add(time.Minute), At: d.now},
			&state.TaskMoved{Case: l.id, To: state.TaskStarted, Generation: 1, Consumed: []net.ConditionID{0}},
			&state.CaseBegun{Case: l.id},
			&state.ItemMoved{Case: l.id, Item: it.ID, Action: workitem.Start, To: workitem.Started, At: d.now},
		}
	default:
		c := l.tree.Case(l.id)
		j, it := c.Jobs.Slice()[0], c.Items.Slice()[0]
		command = "job done"
		events = []state.Change{
			&state.JobMoved{Case: l.id, Job: j.ID, To: state.JobDone, Due: j.Due, Attempt: 1, Fence: 1, At: d.now},
			&state.ItemMoved{Case: l.id, Item: it.ID, Action: workitem.Complete, To: workitem.Completed,
				Output: benchOutput, At: d.now},
			&state.TaskMoved{Case: l.id, To: state.TaskCompleted, Generation: 1},
			&state.Produced{Case: l.id, Into: []net.ConditionID{1}},
			&state.CaseEnded{Case: l.id, State: state.CaseCompleted, Output: benchOutput, At: d.now},
		}
	}
	l.stage = (l.stage + 1) % 3
	l.tree.Begin()
	for _, e := range events {
		if err := l.tree.Apply(e); err != nil {
			return err
		}
	}
	return tx.Append(context.Background(), &store.Entry{Root: l.id, At: d.now, Command: command, Changes: events},
		l.tree)
}

// The whole cost of a command: the fold in memory, its journal row, its part of a commit and of the tables. A command
// is a third of the life of a one-item case with a job.
func BenchmarkCommand(b *testing.B) {
	for _, batch := range []int{1, 64, 256} {
		for _, live := range []int{64, 1024} {
			b.Run(fmt.Sprintf("batch=%d/live=%d", batch, live), func(b *testing.B) {
				s, err := sqlite.File(filepath.Join(b.TempDir(), "bench.db")).Open(b.Context(), store.Options{})
				if err != nil {
					b.Fatal(err)
				}
				def := &store.Definition{Name: "one", Fingerprint: "one", Net: oneTask.Definition()}
				if err := s.Register(b.Context(), []*store.Definition{def}); err != nil {
					b.Fatal(err)
				}
				d := newDriver(live)
				b.ReportAllocs()
				before, commands := cpu(), 0
				for b.Loop() {
					err := s.Update(context.Background(), func(tx store.Tx) error {
						for range batch {
							if err := d.step(tx); err != nil {
								return err
							}
						}
						return nil
					})
					if err != nil {
						b.Fatal(err)
					}
					commands += batch
				}
				if err := s.Idle(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64((cpu()-before).Nanoseconds())/1000/float64(commands), "cpu-us/cmd")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/1000/float64(commands), "us/cmd")
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
