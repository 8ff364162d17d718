package enginetest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/net/verify"
	"github.com/tasq-dev/tasq/store/sqlite"
)

type work = builder.Work[any, any]

// claims starts two checks, and closes the claim after the first of them.
func claims(join builder.Rule, opts ...builder.Option) *builder.Builder[any] {
	b := builder.New[any]("claims", opts...)
	register := builder.Task(b, "register", work{Split: builder.And})
	police := builder.Task(b, "police", work{})
	damage := builder.Task(b, "damage", work{})
	settle := builder.Task(b, "settle", work{Join: join})
	b.Path(b.Start(), register, police, settle, b.End())
	b.Path(register, damage, settle)
	return b
}

// The refusal of Build has the run that shows why, and the run is a scenario that the engine executes without a
// mismatch.
func TestTheRefusalOfBuildRunsAsAScenario(t *testing.T) {
	_, err := claims(builder.Xor).Build()
	text, err := enginetest.Scenario(err)
	require.NoError(t, err)
	require.Contains(t, text, "do settle\n----\nok\n")
	require.Contains(t, text, "show case\n----\ncompleted\n\nshow marking\n----\nend 1\nregister->damage 1\n")
	f, err := scenario.Parse("claims.txt", []byte(text))
	require.NoError(t, err)
	result, err := scenario.Run(context.Background(), f, sqlite.Memory())
	require.NoError(t, err)
	require.Empty(t, result.Mismatches)
	require.NoError(t, result.Broken)
}

// The first finding may be a task that can never start, which no run shows. Then the run is that of another.
func TestAScenarioIsOfTheFirstFindingWithARun(t *testing.T) {
	b := builder.New[any]("claims")
	decide := builder.Task(b, "decide", work{Split: builder.Xor, RouteByCaller: true})
	settle := builder.Task(b, "settle", work{Join: builder.And})
	police, damage := builder.Task(b, "police", work{}), builder.Task(b, "damage", work{})
	b.Path(b.Start(), decide, police, settle, b.End())
	b.Path(decide, damage, settle)
	_, err := b.Build()
	first := (*builder.UnsoundError)(nil)
	require.ErrorAs(t, err, &first)
	require.Equal(t, verify.DeadTask, first.Code)
	text, err := enginetest.Scenario(fmt.Errorf("at start: %w", errors.Join(errors.New("another"), err)))
	require.NoError(t, err)
	require.Contains(t, text, "do decide ")
}

func TestOtherErrorsAreNoScenario(t *testing.T) {
	other := errors.New("something else")
	for _, err := range []error{nil, other, &builder.Error{}} {
		_, got := enginetest.Scenario(err)
		require.ErrorContains(t, got, "not that a workflow is unsound")
	}
	_, err := enginetest.Scenario(other)
	require.ErrorIs(t, err, other)
	_, err = enginetest.Scenario(&builder.UnsoundError{Finding: verify.Finding{Code: verify.DeadTask}})
	require.ErrorIs(t, err, scenario.ErrNoWitness)
}

// recorder is a test that records its failures.
type recorder struct {
	testing.TB
	errors, logs []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
func (r *recorder) Logf(format string, args ...any) {
	r.logs = append(r.logs, fmt.Sprintf(format, args...))
}

func verdictOf(w ...engine.Workflow) *recorder {
	r := &recorder{}
	enginetest.Sound(r, w...)
	return r
}

func TestSoundPassesAndFails(t *testing.T) {
	good := claims(builder.And).MustBuild()
	enginetest.Sound(t, good)

	allowed := claims(builder.Xor, builder.AllowUnsound(verify.ImproperCompletion)).MustBuild()
	r := verdictOf(allowed)
	require.Empty(t, r.errors)
	require.Contains(t, strings.Join(r.logs, "\n"), "warning: and-split-xor-join settle: ")

	r = verdictOf(claims(builder.And, builder.AllowUnsound(verify.DeadTask)).MustBuild())
	require.Equal(t, []string{"workflow claims allows dead-task, which it has not: take that out of AllowUnsound"}, r.errors)
}

// The failure names the run, the places and the remedy; the log has the scenario. Nets of composite tasks are looked at
// too.
func TestSoundReportsWhatIsWrong(t *testing.T) {
	child := claims(builder.Xor, builder.AllowUnsound(verify.ImproperCompletion)).MustBuild()
	child.Verification.Allowed = nil // as if it were made in another way than by Build
	b := builder.New[any]("outer")
	b.Path(b.Start(), builder.Composite(b, "settle", child, builder.Cases[any]{}), b.End())
	r := verdictOf(b.MustBuild())
	require.Len(t, r.errors, 1)
	require.Regexp(t, `^workflow claims is unsound: improper-completion: a case can complete while work is left over: `+
		`"register->damage" \(sound_test.go:\d+, sound_test.go:\d+\)\n`+
		"\trun: register; police; settle; then end 1, register->damage 1\n\tlet the branches meet", r.errors[0])
	require.Contains(t, strings.Join(r.logs, "\n"), "for tasq script:\n# improper-completion")
}

func TestSoundWantsADecision(t *testing.T) {
	b := builder.New[any]("wide")
	fork := builder.Task(b, "fork", work{Split: builder.Or, RouteByCaller: true})
	join := builder.Task(b, "join", work{Join: builder.And})
	b.Path(b.Start(), fork)
	b.Path(join, b.End())
	for i := range 40 {
		b.Path(fork, builder.Task(b, fmt.Sprintf("t%d", i), work{}), join)
	}
	r := verdictOf(b.MustBuild())
	require.Len(t, r.errors, 1)
	require.Contains(t, r.errors[0], "workflow wide: whether it is sound is not decided: or-split ran out")
}

func ExampleScenario() {
	_, err := claims(builder.Xor).Build()
	text, err := enginetest.Scenario(err)
	fmt.Println(err)
	fmt.Println(text[:strings.Index(text, "\n")])
	// Output:
	// <nil>
	// # improper-completion: a case can complete while work is left over: "register->damage"
}

// Workflows that are sound alone, and whose cases can wait for each other for what they hold, are not sound together.
// What one of them allows is not said of it, and allowing it is not superfluous.
func TestSoundLooksAtWhatCasesHoldTogether(t *testing.T) {
	holding := func(name, first, second string, opts ...builder.Option) engine.Workflow {
		b := builder.New[int](name, opts...)
		task := func(name string) *builder.TaskRef[int, int] {
			return builder.Task(b, name, builder.Work[int, int]{Input: builder.CaseInput(b), Run: func(_ context.Context, n int) (int, error) { return n, nil }})
		}
		one, two := task("one"), task("two")
		b.Path(b.Start(), one, two, b.End())
		b.Hold(builder.Takes(limit.Resource(first, 1), 1), one, two)
		b.Hold(builder.Takes(limit.Resource(second, 1), 1), two, two)
		return b.MustBuild()
	}
	in, out := holding("in", "crane", "dock"), holding("out", "dock", "crane")
	enginetest.Sound(t, in)
	enginetest.Sound(t, out)
	r := verdictOf(in, out)
	require.Len(t, r.errors, 1)
	require.Contains(t, r.errors[0], "hold-deadlock two: cases can wait for each other and never go on: case 1 of in holds 1 of crane (since one)")
	require.Empty(t, verdictOf(in, holding("out", "dock", "crane", builder.AllowUnsound(verify.HoldDeadlock))).errors)
}
