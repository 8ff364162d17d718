package dispatch

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// boundedBy is a dispatcher with a bounded queue. count is what the database finds elsewhere.
func boundedBy(most int, count func() int) (*Dispatcher, *jobQueue) {
	d := &Dispatcher{o: Options{Workers: 1, MaxPending: map[string]int{"mail": most}}}
	d.o.Elsewhere = func(context.Context, map[string]int) (map[string]int, error) {
		return map[string]int{"mail": count()}, nil
	}
	d.sched.d, d.sched.queues, d.sched.bounds = d, newQueues(&d.o, nil), newPendingBounds(d.o.MaxPending)
	return d, d.sched.queues.of("mail")
}

func mailJob(id byte) *state.Job {
	return &state.Job{ID: workitem.JobID{id}, Kind: state.JobRun, Queue: "mail", State: state.JobPending}
}

// A job that is offered while the database counts is not lost to the count.
func TestWhatIsOfferedDuringACountCounts(t *testing.T) {
	offered := 1
	var d *Dispatcher
	d, q := boundedBy(3, func() int {
		for range offered {
			d.sched.mu.Lock()
			d.sched.bounds.offered(&d.sched.queues, mailJob(9))
			d.sched.mu.Unlock()
		}
		return 2
	})
	require.NoError(t, d.countElsewhere(t.Context()))
	require.Equal(t, 3, q.waits())
	_, err := d.sched.bounds.reserve(q)
	require.Error(t, err)
	offered = 0
	require.NoError(t, d.countElsewhere(t.Context()))
	require.Equal(t, 2, q.waits(), "if the database had found it, the next count is exact")
}

// The jobs that an engine had when it was declared dead wait elsewhere, and count once, and those that it has taken since then count here. So
// it is with jobs that another engine has canceled, once a start would be refused.
func TestJobsThatAnEngineHasLostDoNotCount(t *testing.T) {
	for name, lose := range map[string]func(*Dispatcher){
		"the writer notices it":    func(d *Dispatcher) { d.Ownership().Lost() },
		"the heartbeat notices it": func(d *Dispatcher) { d.Ownership().Rejoined() },
		"they were canceled":       func(d *Dispatcher) { require.NoError(t, d.LookForRoom(t.Context())) },
	} {
		t.Run(name, func(t *testing.T) {
			d, q := boundedBy(3, func() int { return 1 })
			gate, _ := gateOf()
			d.sched.claims, d.sched.limits = newClaims(), *gate
			d.o.Now = time.Now
			d.o.Held = func(context.Context, int) ([]*state.Job, error) { return []*state.Job{mailJob(2)}, nil }
			for _, id := range []byte{1, 2} {
				d.sched.bounds.count(mailJob(id), q)
			}
			require.NoError(t, d.countElsewhere(t.Context()))
			require.Equal(t, 2, q.pending, "without a doubt nothing is read")
			_, err := d.sched.bounds.reserve(q)
			require.Error(t, err)
			lose(d)
			require.NoError(t, d.countElsewhere(t.Context()))
			require.Equal(t, 1, q.pending)
			_, err = d.sched.bounds.reserve(q)
			require.NoError(t, err, "two wait, and three may")
		})
	}
}
