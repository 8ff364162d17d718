package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/workitem"
)

// logBook keeps what is logged, as JSON lines.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// lines returns the lines of one message.
func (b *logBook) lines(t *testing.T, msg string) (found []map[string]any) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, line := range bytes.Split(bytes.TrimSpace(b.text.Bytes()), []byte("\n")) {
		var fields map[string]any
		require.NoError(t, json.Unmarshal(line, &fields))
		if fields["msg"] == msg {
			found = append(found, fields)
		}
	}
	return found
}

// Every attempt is one line at DEBUG, whatever made it: fourteen that fail are fourteen lines, each with who it was, its
// number, the wait before the next one, and the cause.
func TestEachAttemptIsALineOfTheLog(t *testing.T) {
	var book logBook
	log := slog.New(slog.NewJSONHandler(&book, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ctx, busy := t.Context(), workitem.Failf("busy", "try later")
	p := retry.Exponential(3, time.Second)

	action := builder.MustFunc("charge", func(context.Context, page) (fetched, error) { return fetched{}, busy }) // 4
	stepping := builder.MustFunc("stepping", func(ctx context.Context, _ page) (fetched, error) {                 // 3 + 1
		return step.Do(ctx, "fetch", func(context.Context) (fetched, error) { return fetched{}, busy }, step.Retry(p))
	}, builder.Retry(func(p *retry.Policy) { p.Attempts = 1 }))
	b := builder.New[page]("pages") // 3, and 3 of the job
	remind := builder.Job(b, "remind", func(context.Context, page) error { return busy }, builder.JobOptions{Retry: p})
	fetch := builder.Task(b, "fetch", builder.Work[page, fetched]{
		Run:                    func(context.Context, page) (fetched, error) { return fetched{}, busy },
		OnWorkItemStateChanged: activities.Retry(p),
	})
	b.OnInitialized(func(_ context.Context, c *activities.Case) error {
		_, err := remind.Detached(c, 0, page{})
		return err
	})
	b.Path(b.Start(), fetch, b.End())
	pages := b.MustBuild()

	e := enginetest.Open(t, enginetest.Store(t), engine.Config{Logger: log}, action, stepping, pages)
	_, err := action.Run(ctx, e, page{})
	require.NoError(t, err)
	_, err = stepping.Run(ctx, e, page{})
	require.NoError(t, err)
	_, err = pages.Start(ctx, e, page{})
	require.NoError(t, err)
	e.Advance(time.Hour)

	failed := book.lines(t, "attempt failed")
	require.Len(t, failed, 4+3+1+3+3)
	waits := make(map[any][]any)
	for _, line := range failed {
		require.Equal(t, "DEBUG", line["level"])
		require.Equal(t, "busy", line["code"])
		require.Contains(t, line["error"], "try later")
		require.NotEmpty(t, line["case"])
		require.NotEmpty(t, line["workflow"])
		who := line["function"]
		if line["step"] != nil {
			who = line["step"].(string) + " in " + who.(string)
		}
		waits[who] = append(waits[who], line["wait"])
		require.EqualValues(t, len(waits[who]), line["attempt"], "%v", line)
	}
	ms := func(d time.Duration) any { return float64(d) }
	require.Equal(t, map[any][]any{
		"charge":            {ms(250 * time.Millisecond), ms(500 * time.Millisecond), ms(time.Second), nil},
		"stepping":          {nil},
		"fetch in stepping": {ms(time.Second), ms(2 * time.Second), nil},
		"fetch":             {ms(time.Second), ms(2 * time.Second), nil},
		"remind":            {ms(time.Second), ms(2 * time.Second), nil},
	}, waits)
}

// All the branches of all functions together run no more functions of steps at a time than the engine may.
func TestStepsRunNoMoreAtATimeThanTheEngineMay(t *testing.T) {
	const most = 5
	var now, seen atomic.Int32
	full := make(chan struct{})
	a := builder.MustFunc("wide", func(ctx context.Context, _ page) (int, error) {
		got, err := step.Map(ctx, make([]int, 40), 0, func(ctx context.Context, i, _ int) (int, error) {
			return step.Do(ctx, fmt.Sprint("part ", i), func(context.Context) (int, error) {
				n := now.Add(1)
				defer now.Add(-1)
				if seen.Store(max(seen.Load(), n)); n == most {
					select {
					case <-full:
					default:
						close(full)
					}
				}
				<-full
				for range 100 {
					runtime.Gosched()
				}
				return i, nil
			})
		})
		return len(got), err
	})
	e := enginetest.Open(t, enginetest.Store(t), engine.Config{Steps: most}, a)
	run, err := a.Run(t.Context(), e, page{})
	require.NoError(t, err)
	n, err := run.Result(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, 40, n)
	require.EqualValues(t, most, seen.Load())
}

// In plain code the call has a logger of its own.
func TestDoLogsEachAttempt(t *testing.T) {
	var book logBook
	call := retry.Call[int]{
		Name: "fetch", Policy: retry.Constant(14, 0),
		Log: slog.New(slog.NewJSONHandler(&book, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	_, err := call.Do(t.Context(), func(context.Context, int) (int, error) { return 0, errors.New("down") })
	require.Error(t, err)
	lines := book.lines(t, "attempt failed")
	require.Len(t, lines, 14)
	require.EqualValues(t, 14, lines[13]["attempt"])
	require.Equal(t, "down", lines[13]["error"])
	_, err = call.Do(t.Context(), func(context.Context, int) (int, error) { return 1, nil })
	require.NoError(t, err)
	require.Len(t, book.lines(t, "attempt completed"), 1)
}
