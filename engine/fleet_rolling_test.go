package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// rolled is a workflow of a version, with an effect before and one after a short wait.
func rolled(version string) engine.Workflow {
	effect := func(ctx context.Context, name string, n int) error {
		_, err := step.Tx(ctx, name, func(ctx context.Context, db domain.DB) (int, error) {
			_, err := db.ExecContext(ctx, "INSERT INTO effects VALUES ($1, $2, $3)", n, name, version)
			return n, err
		})
		return err
	}
	return builder.MustFunc("order", func(ctx context.Context, n int) (string, error) {
		if err := effect(ctx, "first", n); err != nil {
			return "", err
		}
		if err := step.Sleep(ctx, "wait", 20*time.Millisecond); err != nil {
			return "", err
		}
		return version, effect(ctx, "second", n)
	}, builder.Version(version))
}

// patient is a workflow whose job says that it began, and runs until a channel is closed. Its program is its result.
func patient(program string, began chan<- string, until <-chan struct{}) engine.Workflow {
	return builder.MustFunc("patient", func(ctx context.Context, _ int) (string, error) {
		began <- program
		select {
		case <-until:
			return program, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
}

// Three programs are replaced one by one under load: each new one has the definitions of both versions, and is opened before an old one is
// closed. Every case completes in the version in which it was started, each effect is there once, nothing fails, and no attempt is repeated.
// Each old program has a job that runs longer than its grace, which a new one does.
func TestARollingDeploymentFailsNothing(t *testing.T) {
	f := newFleet(t)
	began, replaced := make(chan string, 100), make(chan struct{})
	config := engine.Config{Workers: 4, Grace: time.Millisecond}
	f.sql("CREATE TABLE effects (n int, name text, version text)")
	var open sync.Mutex // guards engines
	var engines []*engine.Engine
	var long []workitem.CaseID
	for i := range 3 {
		engines = append(engines, f.open(config, rolled("1"), patient(fmt.Sprint("old ", i), began, replaced)))
		long = append(long, startOn(t, engines[i], "patient", "0"))
		<-began
	}
	var next atomic.Int64
	ids := make([]workitem.CaseID, testsize.Pick(150, 300, 3000))
	// on runs f on an engine that is open: one that is closed meanwhile is replaced by then.
	on := func(n int, f func(e *engine.Engine) error) error {
		for {
			open.Lock()
			e := engines[n%3]
			open.Unlock()
			if err := f(e); !errors.Is(err, engine.ErrClosed) {
				return err
			}
		}
	}
	order := func(n int) error {
		err := on(n, func(e *engine.Engine) error {
			r, err := e.Do(t.Context(), workflow.Start("order", fmt.Append(nil, n), workflow.Key(fmt.Sprint(n))))
			ids[n] = r.Case
			return err
		})
		return errors.Join(err, on(n, func(e *engine.Engine) error {
			_, err := e.Wait(t.Context(), ids[n])
			return err
		}))
	}
	var load sync.WaitGroup
	failed := make(chan error, len(ids))
	for range 12 {
		load.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(ids); n = int(next.Add(1)) - 1 {
				if err := order(n); err != nil {
					failed <- err
				}
			}
		})
	}
	for i := range engines {
		f.until("SELECT count(*) FROM effects", func(n int) bool { return n >= (i+1)*len(ids)/6 })
		fresh := f.open(config, rolled("1"), rolled("2"), patient("new", began, replaced))
		open.Lock()
		old := engines[i]
		engines[i] = fresh
		open.Unlock()
		require.NoError(t, old.Close())
	}
	close(replaced)
	load.Wait()
	for _, id := range long {
		require.Equal(t, `completed: "new"`, ends(t, engines[0], id))
	}
	close(failed)
	for err := range failed {
		require.NoError(t, err)
	}
	versions := make(map[string]int)
	for n, id := range ids {
		versions[ends(t, engines[n%3], id)]++
	}
	require.Equal(t, len(ids), versions[`completed: "1"`]+versions[`completed: "2"`], "%v", versions)
	require.Positive(t, versions[`completed: "1"`])
	require.Positive(t, versions[`completed: "2"`])
	require.Equal(t, 2*len(ids), f.sql("SELECT count(*) FROM effects"))
	require.Equal(t, 2*len(ids), f.sql("SELECT count(DISTINCT (n, name)) FROM effects"))
	require.Zero(t, f.sql("SELECT count(*) FROM (SELECT n FROM effects GROUP BY n HAVING count(DISTINCT version) > 1) mixed"))
	require.Zero(t, f.sql("SELECT count(*) FROM tasq.work_items WHERE attempt > 1 OR state = 'failed'"), "a repeated attempt")
	require.Zero(t, f.sql("SELECT count(*) FROM tasq.jobs WHERE crashes > 0 OR state = 'failed'"), "a crash")
}
