package builder_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// claims settles insurance claims. Both checks are started, and an xor-join closes the claim after the first of them.
func claims(opts ...builder.Option) *builder.Builder[any] {
	b := builder.New[any]("claims", opts...)
	register := builder.Task(b, "register", anyWork{Split: builder.And})
	police := builder.Task(b, "police", anyWork{})
	damage := builder.Task(b, "damage", anyWork{})
	settle := builder.Task(b, "settle", anyWork{Join: builder.Xor})
	b.Path(b.Start(), register, police, settle, b.End())
	b.Path(register, damage, settle)
	return b
}

// lineOf is the line of this file on which a text stands first.
func lineOf(t *testing.T, text string) int {
	source, err := os.ReadFile("verify_test.go")
	require.NoError(t, err)
	before, _, _ := strings.Cut(string(source), text)
	return 1 + strings.Count(before, "\n")
}

func TestBuildRefusesWhatIsUnsound(t *testing.T) {
	w, err := claims().Build()
	require.Nil(t, w)
	unsound := (*builder.UnsoundError)(nil)
	require.ErrorAs(t, err, &unsound)
	require.Equal(t, verify.ImproperCompletion, unsound.Code)
	require.Equal(t, "claims", unsound.Workflow)
	require.Equal(t, "register; police; settle; then end 1, register->damage 1", unsound.Witness.String())
	all := (*builder.Error)(nil)
	require.ErrorAs(t, err, &all)
	require.Len(t, all.Problems, 1)
	require.Equal(t, lineOf(t, "b.Path(register, damage"), all.Problems[0].Pos.Line)
	require.Equal(t, fmt.Sprintf(`claims: 1 problem
verify_test.go:%d: improper-completion: a case can complete while work is left over: "register->damage"; run: register; police; `+
		`settle; then end 1, register->damage 1
	let the branches meet in an and-join before the end, let only one of them run (an xor-split), or let the last task cancel the others (a cancellation region),
	or allow it with builder.AllowUnsound("improper-completion")
warning: verify_test.go:%d: and-split-xor-join: the xor-join of "settle" does not wait for all the branches that "register" `+
		`starts together (and) (verify_test.go:%d)
warning: verify_test.go:%[2]d: xor-join-twice: the xor-join of "settle" can hold two tokens at once, and takes only one when it starts`,
		lineOf(t, "b.Path(register, damage"), lineOf(t, "settle := "), lineOf(t, "register := ")), err.Error())
	require.Panics(t, func() { claims().MustBuild() })
}

func TestWhatIsUnsoundCanBeAllowed(t *testing.T) {
	strict, err := claims(builder.AllowUnsound(verify.DeadTask)).Build()
	require.Error(t, err, "a different code does not help")
	require.Nil(t, strict)

	w, err := claims(builder.AllowUnsound(verify.ImproperCompletion, verify.DeadTask, verify.DeadTask)).Build()
	require.NoError(t, err)
	require.Equal(t, verify.Unsound, w.Verification.Verdict)
	require.Equal(t, []net.Code{verify.DeadTask, verify.ImproperCompletion}, w.Verification.Allowed)
	require.Equal(t, verify.ImproperCompletion, w.Verification.Findings[0].Code)
	var doc struct{ Allows, Silences []string }
	require.NoError(t, json.Unmarshal(w.Document, &doc))
	require.Equal(t, []string{"dead-task", "improper-completion"}, doc.Allows)
	require.Empty(t, doc.Silences)
}

func TestWarningsAreKeptAndSilenced(t *testing.T) {
	codes := func(opts ...builder.Option) (all []net.Code) {
		opts = append(opts, builder.AllowUnsound(verify.ImproperCompletion))
		for _, w := range claims(opts...).MustBuild().Warnings() {
			all = append(all, w.Code)
		}
		return all
	}
	require.Equal(t, []net.Code{verify.AndSplitXorJoin, verify.XorJoinTwice}, codes())
	require.Equal(t, []net.Code{verify.AndSplitXorJoin}, codes(builder.Silence(verify.XorJoinTwice)))
	require.Empty(t, codes(builder.Silence(verify.XorJoinTwice), builder.Silence(verify.AndSplitXorJoin)))
	require.Empty(t, (*builder.Workflow[any])(nil).Warnings())

	w := claims(builder.AllowUnsound(verify.ImproperCompletion), builder.Silence(verify.XorJoinTwice)).MustBuild()
	require.Contains(t, string(w.Document), `"silences":["xor-join-twice"]`)
}

// A net is weakly sound if a task can never start, and a region or an or-join may be why: that is no problem.
func TestADeadTaskBesideRegionsIsAWarning(t *testing.T) {
	weak := func(opts ...builder.Option) *builder.Workflow[any] {
		b := builder.New[any]("weak", opts...)
		choose := builder.Task(b, "choose", anyWork{Split: builder.Xor, RouteByCaller: true})
		never := builder.Task(b, "never", anyWork{Join: builder.And})
		always := builder.Task(b, "always", anyWork{Join: builder.Or})
		left, right := b.Condition("left"), b.Condition("right")
		b.Path(b.Start(), choose, left, never, always, b.End())
		b.Path(choose, right, never)
		b.Path(left, always)
		b.Path(right, always)
		return b.MustBuild()
	}
	w := weak()
	require.Equal(t, verify.WeaklySound, w.Verification.Verdict)
	require.Equal(t, "dead-task never", w.Verification.Findings[0].String())
	require.Contains(t, fmt.Sprint(w.Warnings()), "dead-task never")
	require.NotContains(t, fmt.Sprint(weak(builder.Silence(verify.DeadTask)).Warnings()), "dead-task")
}

// A net that cannot be decided builds, with a warning.
func TestUndecidedIsAWarning(t *testing.T) {
	wide := func(opts ...builder.Option) *builder.Workflow[any] {
		b := builder.New[any]("wide", opts...)
		fork := builder.Task(b, "fork", anyWork{Split: builder.Or, RouteByCaller: true})
		join := builder.Task(b, "join", anyWork{Join: builder.And})
		b.Path(b.Start(), fork)
		b.Path(join, b.End())
		for i := range 40 {
			b.Path(fork, builder.Task(b, fmt.Sprintf("t%d", i), anyWork{}), join)
		}
		return b.MustBuild()
	}
	w := wide()
	require.Equal(t, verify.Unknown, w.Verification.Verdict)
	last := w.Warnings()[len(w.Warnings())-1]
	require.Equal(t, verify.Undecided, last.Code)
	require.Contains(t, last.Text, "or-split ran out")
	require.NotContains(t, fmt.Sprint(wide(builder.Silence(verify.Undecided)).Warnings()), "unknown")
}

func TestCodesOfOptionsAreChecked(t *testing.T) {
	_, _, line, _ := runtime.Caller(0)
	_, err := builder.New[any]("w",
		builder.AllowUnsound("improper-complete"), builder.AllowUnsound(verify.Unsafe), builder.AllowUnsound(),
		builder.Silence(verify.ImproperCompletion), builder.Silence(net.RoutingCycle)).Build()
	all := (*builder.Error)(nil)
	require.True(t, errors.As(err, &all))
	var bad []string
	for _, p := range all.Problems {
		if p.Code == builder.BadCode {
			require.InDelta(t, line+2, p.Pos.Line, 1)
			bad = append(bad, p.Subject)
		}
	}
	require.Equal(t, []string{"improper-complete", "unsafe", "w", "improper-completion", "routing-cycle"}, bad)
	require.ErrorContains(t, err, `AllowUnsound of workflow "w" names "improper-complete", which is no code that it knows; `+
		`it knows dead-task, improper-completion, no-option-to-complete, unbounded`)
}
