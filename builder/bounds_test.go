package builder_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
)

// What not every database can keep is refused by Build, and not by the first start on one of them.
func TestADefinitionHasWhatEachStoreCanKeep(t *testing.T) {
	for name, w := range map[string]anyWork{
		`bad-queue: task "a": the queue: invalid text: a NUL is in it`:             {Queue: "a\x00"},
		`bad-queue: task "a": the queue: invalid text: not UTF-8`:                  {Queue: "\xff"},
		`bad-queue: task "a": the queue has 2000 bytes, and at most 1000 are kept`: {Queue: strings.Repeat("q", 2000)},
	} {
		b := builder.New[any]("w")
		b.Path(b.Start(), builder.Task(b, "a", w), b.End())
		_, err := b.Build()
		require.ErrorContains(t, err, name)
	}
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
