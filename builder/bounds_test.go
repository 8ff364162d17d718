package builder_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/schedule"
	"github.com/tasq-dev/tasq/workitem"
)

// What not every database can keep is refused by Build, and not by the first start on one of them.
func TestADefinitionHasWhatEachStoreCanKeep(t *testing.T) {
	for name, w := range map[string]anyWork{
		`bad-policy: the policy of task "a" cannot be used: use a quorum of 1 or more`:                    {Policy: workitem.Quorum(0)},
		`bad-policy: the policy of task "a" cannot be used: bear 0 failures or more`:                      {Policy: workitem.Incident(workitem.Threshold(-1))},
		`bad-policy: the policy of task "a" cannot be used: it has no function`:                           {Policy: workitem.NewPolicy("p", nil)},
		`bad-queue: task "a": the queue: invalid text: it contains a NUL`:                                 {Queue: "a\x00"},
		`bad-queue: task "a": the queue: invalid text: not UTF-8`:                                         {Queue: "\xff"},
		`bad-queue: task "a": the queue has 2000 bytes, and at most 1000 are kept`:                        {Queue: strings.Repeat("q", 2000)},
		`bad-priority: task "a": the priority is 2147483648, and must be from -2147483647 to 2147483647`:  {Priority: 1 << 31},
		`bad-priority: task "a": the priority is -2147483648, and must be from -2147483647 to 2147483647`: {Priority: -1 << 31},
	} {
		b := builder.New[any]("w")
		b.Path(b.Start(), builder.Task(b, "a", w), b.End())
		_, err := b.Build()
		require.ErrorContains(t, err, name)
	}
	long := strings.Repeat("n", 201)
	_, err := builder.Func(long, func(context.Context, string) (string, error) { return "", nil })
	require.ErrorContains(t, err, "bad-name: the name of a workflow has 201 bytes, and at most 200 are allowed")
	b := builder.New[any]("w")
	b.Path(b.Start(), builder.Task(b, long, anyWork{}), b.End())
	_, err = b.Build()
	require.ErrorContains(t, err, "bad-name: the name of a task has 201 bytes, and at most 200 are allowed")
	for name, o := range map[string]builder.Option{
		"bad-version: workflow \"w\": the version: invalid text: not UTF-8":   builder.Version("\xff"),
		"bad-topic: workflow \"w\" subscribes to a topic: the name of the ev": builder.On("\x00"),
		"nil-function: label \"l\" of workflow \"w\" is given no function":    builder.Label[any]("l", nil),
		"nil-function: the business key of workflow \"w\" is given no func":   builder.BusinessKey[any](nil),
	} {
		b := builder.New[any]("w", o)
		b.Path(b.Start(), builder.Task(b, "a", anyWork{}), b.End())
		_, err := b.Build()
		require.ErrorContains(t, err, name)
	}
}

// A function that is nil is a problem of the definition, or an error of what it was for.
func TestFunctionsOfNeedsAreNotNil(t *testing.T) {
	l := limit.Resource("gpus", 2)
	for _, need := range []builder.Need{builder.TakesBy[string](l, 1, nil), builder.TakesOf[string](l, nil)} {
		_, err := builder.Func("f", func(context.Context, string) (string, error) { return "", nil }, builder.Limits(need))
		require.ErrorContains(t, err, `the function for "gpus" is nil`)
	}
	scheduled := builder.Schedule[string](schedule.Schedule{Name: "daily", Every: time.Hour}, nil, "")
	require.ErrorContains(t, scheduled.Start.Check(), "not built")
}
