package source_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// asked counts the questions to the owner of a database, by kind.
type asked map[workflow.Kind]int

// post answers as an owner does, or not at all without one.
func (a asked) post(owner *bool) source.Post {
	return func(ctx context.Context, command json.RawMessage) (store.Answer, error) {
		var c workflow.Command
		if err := json.Unmarshal(command, &c); err != nil {
			return store.Answer{}, err
		}
		a[c.Kind]++
		if *owner {
			return store.Answer{Result: json.RawMessage(`{"limits":[{"waiting":1}],"queues":[{"queue":"mail"}]}`)}, nil
		}
		<-ctx.Done()
		return store.Answer{}, ctx.Err()
	}
}

// An owner is asked once in some seconds, whether it answers or is not there, and again after a change.
func TestAnOwnerIsAskedOnceInSomeSeconds(t *testing.T) {
	for _, owner := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			questions := make(asked)
			clock := virtual.NewClock()
			b := source.Reading(nil, questions.post(&owner), clock)
			recall := func(c workflow.Command) (workflow.Result, error) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				return b.(source.Recaller).Recall(ctx, c)
			}
			for i := range 4 {
				begun := time.Now()
				result, err := recall(workflow.Limits())
				if owner {
					require.NoError(t, err)
					require.Len(t, result.Limits, 1)
				} else {
					require.ErrorIs(t, err, source.ErrNoOwner)
					require.ErrorIs(t, err, store.ErrUnavailable)
				}
				require.Equal(t, !owner && i == 0, time.Since(begun) > 0, "only the first question waits")
			}
			require.Equal(t, 1, questions[workflow.KindLimits])
			_, _ = recall(workflow.Queues())
			require.Equal(t, 1, questions[workflow.KindQueues])

			clock.Set(clock.Now().Add(5 * time.Second))
			_, _ = recall(workflow.Limits())
			require.Equal(t, 2, questions[workflow.KindLimits])

			_, _ = b.Do(t.Context(), workflow.Cancel(workitem.CaseID{1}, nil))
			_, _ = recall(workflow.Limits())
			require.Equal(t, 3, questions[workflow.KindLimits], "what was done may have changed them")
		})
	}
}

// An answer from before a change, and a question that its user did not wait for, are not remembered.
func TestWhatIsOldOrWasNotAwaitedIsNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		questions, owner := 0, make(chan store.Answer)
		b := source.Reading(nil, func(ctx context.Context, _ json.RawMessage) (store.Answer, error) {
			questions++
			select {
			case a := <-owner:
				return a, nil
			case <-ctx.Done():
				return store.Answer{}, ctx.Err()
			}
		}, retry.SystemClock)
		answer := store.Answer{Result: json.RawMessage(`{}`)}
		ask := func(ctx context.Context) { _, _ = b.(source.Recaller).Recall(ctx, workflow.Limits()) }

		gone, leave := context.WithCancel(t.Context())
		go ask(gone)
		synctest.Wait()
		leave()
		synctest.Wait()
		go ask(t.Context())
		synctest.Wait()
		require.Equal(t, 2, questions)

		go func() { _, _ = b.Do(t.Context(), workflow.Cancel(workitem.CaseID{1}, nil)) }()
		synctest.Wait()
		owner <- answer
		owner <- answer
		synctest.Wait()
		require.Equal(t, 3, questions)
		go ask(t.Context())
		synctest.Wait()
		owner <- answer
		require.Equal(t, 3+1, questions, "a change was under way when it was answered")
	})
}

// Where no engine has the database open, none is asked; one that opens it is asked at once.
func TestNoOwnerIsNotAsked(t *testing.T) {
	questions, owner, owned := make(asked), true, false
	b := source.Reading(nil, questions.post(&owner), retry.SystemClock, source.Owned(func(context.Context) (bool, error) { return owned, nil }))
	_, err := b.(source.Recaller).Recall(t.Context(), workflow.Limits())
	require.ErrorIs(t, err, source.ErrNoOwner)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.Empty(t, questions)
	owned = true
	result, err := b.(source.Recaller).Recall(t.Context(), workflow.Limits())
	require.NoError(t, err)
	require.Len(t, result.Limits, 1)
	require.Equal(t, 1, questions[workflow.KindLimits])
}
