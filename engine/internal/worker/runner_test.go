package worker

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/internal/registry"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// runnerWith returns a runner for functions without steps, which need no writer.
func runnerWith(t *testing.T, o Options) *Runner {
	t.Helper()
	o.Context, o.Log, o.Now = t.Context(), slog.New(slog.DiscardHandler), time.Now
	definitions, err := registry.New(o.Log, nil)
	require.NoError(t, err)
	o.Definitions = definitions
	if o.CheckPayload == nil {
		o.CheckPayload = func(string, json.RawMessage) error { return nil }
	}
	return New(o)
}

// runItem runs the work of an item of a function, on a goroutine of its own, since the function may end it.
func runItem(ctx context.Context, r *Runner, def *workflow.Definition, job byte, input string) (output string, failure *workitem.Failure) {
	w := &activities.Work{Job: workitem.JobID{job}, Item: &workitem.Item{ID: workitem.ID{job}, Task: "run"}, Input: json.RawMessage(input), Attempt: 1}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	j := r.NewJournal(workitem.CaseID{1}, w, nil, cancel)
	failure = workitem.FailureOf(ErrExited)
	var done sync.WaitGroup
	done.Go(func() {
		var raw json.RawMessage
		raw, failure, _ = r.Run(ctx, def, j, nil, nil)
		output = string(raw)
	})
	done.Wait()
	return output, failure
}

func double(_ context.Context, n int) (int, error) { return 2 * n, nil }

func TestAFunctionIsCalledWithItsInput(t *testing.T) {
	output, failure := runItem(t.Context(), runnerWith(t, Options{}), builder.MustFunc("f", double).Untyped(), 1, "21")
	require.Nil(t, failure)
	require.Equal(t, "42", output)
}

// Whatever a function or its middleware does, the run has one failure that says what it was.
func TestHowAFunctionFails(t *testing.T) {
	const none = ""
	for name, c := range map[string]struct {
		run     func(context.Context, int) (int, error)
		options Options
		timeout time.Duration
		code    string
		says    string
	}{
		"an error": {run: func(context.Context, int) (int, error) { return 0, errors.New("no funds") }, code: workitem.CodeError, says: "no funds"},
		"a panic":  {run: func(context.Context, int) (int, error) { panic("index 7") }, code: workitem.CodePanic, says: "index 7"},
		"an error that panics": {run: func(context.Context, int) (int, error) { return 0, spoiledError{} },
			code: workitem.CodeError, says: "spoiledError"},
		"after its timeout": {run: func(ctx context.Context, _ int) (int, error) {
			<-ctx.Done()
			return 0, errors.New("driver: canceled")
		}, timeout: time.Second, code: workitem.CodeTimeout, says: "driver: canceled"},
		"middleware refuses": {run: double, options: Options{AroundJob: func(context.Context, *activities.Work, func(context.Context) error) error {
			return errors.New("not now")
		}}, code: workitem.CodeError, says: "not now"},
		"middleware hides the output with an error": {run: double, options: Options{AroundJob: func(ctx context.Context, _ *activities.Work, next func(context.Context) error) error {
			return errors.Join(next(ctx), errors.New("afterwards"))
		}}, code: workitem.CodeError, says: "afterwards"},
		"middleware panics": {run: double, options: Options{AroundJob: func(context.Context, *activities.Work, func(context.Context) error) error {
			panic("around")
		}}, code: workitem.CodePanic, says: "around"},
		"an output that cannot be stored": {run: double, options: Options{CheckPayload: func(what string, _ json.RawMessage) error {
			return errors.New(what + " is too large")
		}}, code: workitem.CodeError, says: "output: output is too large"},
		"it ends its goroutine": {run: func(context.Context, int) (int, error) {
			runtime.Goexit()
			return 0, nil
		}, code: workitem.CodePanic, says: "Goexit"},
		"none": {run: double, code: none},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var opts []builder.FuncOption
				if c.timeout > 0 {
					opts = append(opts, builder.AttemptTimeout(c.timeout))
				}
				output, failure := runItem(t.Context(), runnerWith(t, c.options), builder.MustFunc("f", c.run, opts...).Untyped(), 1, "21")
				if c.code == none {
					require.Nil(t, failure)
					return
				}
				require.Empty(t, output)
				require.NotNil(t, failure)
				require.Equal(t, c.code, failure.Code, failure)
				require.Contains(t, failure.Message, c.says)
			})
		})
	}
}

// spoiledError is an error whose text cannot be read.
type spoiledError struct{}

// Error implements error.
func (spoiledError) Error() string { panic("no text") }

func TestAScheduledFunctionThatTheDefinitionLacks(t *testing.T) {
	r := runnerWith(t, Options{})
	w := &activities.Work{Job: workitem.JobID{1}, Name: "remind"}
	j := r.NewJournal(workitem.CaseID{1}, w, nil, func(error) {})
	_, failure, how := r.Run(t.Context(), builder.MustFunc("f", double).Untyped(), j, nil, nil)
	require.Equal(t, Returned, how)
	require.Contains(t, failure.Message, `workflow f has no function "remind"`)
}

// The jobs of a batch meet in one call. One that does not come, because its middleware fails, is not waited for.
func TestJobsOfABatchMeetInOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls [][]string
		def := builder.MustBatch("upper", 3, 0, func(_ context.Context, in []string) (out []builder.Outcome[string], _ error) {
			calls = append(calls, in)
			for _, s := range in {
				out = append(out, builder.Outcome[string]{Value: strings.ToUpper(s)})
			}
			return out, nil
		}).Untyped()
		r := runnerWith(t, Options{AroundJob: func(ctx context.Context, w *activities.Work, next func(context.Context) error) error {
			if w.Job[0] == 2 {
				return errors.New("refused")
			}
			return next(ctx)
		}})
		b := NewBatch(t.Context())
		outputs, failures := make([]string, 4), make([]*workitem.Failure, 4)
		for i := range byte(3) {
			b.Expect(workitem.JobID{i + 1})
		}
		var all sync.WaitGroup
		for i, input := range []string{1: `"a"`, 2: `"b"`, 3: `"c"`} {
			if input == "" {
				continue
			}
			all.Go(func() {
				defer b.Leave(workitem.JobID{byte(i)})
				outputs[i], failures[i] = runItem(b.NewContext(t.Context()), r, def, byte(i), input)
			})
			synctest.Wait() // the call is made when the last of them is there, and not before
			require.Equal(t, i == 3, len(calls) == 1)
		}
		all.Wait()
		require.Equal(t, [][]string{{"a", "c"}}, calls)
		require.Equal(t, []string{"", `"A"`, "", `"C"`}, outputs)
		require.Contains(t, failures[2].Message, "refused")

		output, failure := runItem(b.NewContext(t.Context()), r, def, 1, `"again"`) // its call is over
		require.Nil(t, failure)
		require.Equal(t, `"AGAIN"`, output)
		require.Equal(t, []string{"again"}, calls[1])
	})
}
