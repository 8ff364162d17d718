package why_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/workflow"
)

// A search that is bounded looks at the oldest cases, and says whether there are more.
func TestASearchThatIsBoundedSaysThatThereIsMore(t *testing.T) {
	b := builder.New[any]("waits")
	b.Path(b.Start(), builder.Task(b, "work", builder.Work[any, any]{}), b.End())
	e := enginetest.New(t, b.MustBuild())
	var all []string
	for range 3 {
		started, err := e.Do(t.Context(), workflow.Start("waits", []byte(`{}`)))
		require.NoError(t, err)
		require.NoError(t, enginetest.Do(t.Context(), e, workflow.Suspend(started.Case)))
		all = append(all, started.Case.String())
	}
	for most, wanted := range map[int][]string{1: all[:1], 2: all[:2], 3: all, 4: all, 0: all} {
		var found []string
		var ended error
		for s, err := range why.Stranded(t.Context(), e, why.Search{Here: e.Here(), Now: e.Now(), Most: most}) {
			if ended = err; err == nil {
				found = append(found, s.Case.String())
			}
		}
		require.Equal(t, wanted, found, "at most %d", most)
		if most == 1 || most == 2 {
			require.ErrorIs(t, ended, why.ErrMore)
		} else {
			require.NoError(t, ended)
		}
	}
}
