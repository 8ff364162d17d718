package cli

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/store"
)

// A command that makes a setting again says who made it first, when and why, unless it gives another reason.
func TestASettingThatIsMadeAgainSaysWhoMadeIt(t *testing.T) {
	onEachStore(t, func(t *testing.T, db store.Opener, at string) {
		b := builder.New[any]("order")
		b.Path(b.Start(), builder.Task(b, "pay", builder.Work[any, any]{}), b.End())
		e, err := engine.Config{Logger: slog.New(slog.DiscardHandler), Limits: []limit.Limit{{Name: "bank", N: 5, Algorithm: limit.Slots, Each: 1}}}.Open(t.Context(), db, b.MustBuild())
		require.NoError(t, err)
		defer e.Close()
		for _, command := range [][]string{
			{"queue", "pause", "mail"}, {"queue", "pause", "mail", "--key", "ada"}, {"queue", "workers", "mail", "3"},
			{"limit", "set", "bank", "0"}, {"limit", "set", "bank", "1", "--key", "ada"}, {"workflow", "suspend", "order"},
		} {
			say := func(args ...string) string {
				t.Helper()
				code, out, errs := tasq(t, at, append(command, args...)...)
				require.Zero(t, code, errs)
				return out
			}
			const first = `; set before by ann, \S+ ago \(the bank is closed\)\n$`
			require.NotContains(t, say("--by", "ann", "--reason", "the bank is closed"), "before")
			require.Regexp(t, first, say("--by", "bob"))
			require.Regexp(t, first, say("--by", "bob", "--reason", "the bank is closed"))
			require.NotContains(t, say("--by", "bob", "--reason", "a holiday"), "before")
		}
	})
}
