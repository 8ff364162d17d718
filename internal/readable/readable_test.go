package readable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/readable"
)

// pointer is an error as people write them: its methods follow the pointer, and panic if it is nil.
type pointer struct{ cause error }

func (p *pointer) Error() string { return "failed: " + p.cause.Error() }
func (p *pointer) Unwrap() error { return p.cause }

type unwraps struct{ pointer }

func (*unwraps) Error() string { return "unwraps" }

type is struct{}

func (is) Error() string { return "is" }
func (is) Is(error) bool { panic("Is") }

type as struct{}

func (as) Error() string { return "as" }
func (as) As(any) bool   { panic("As") }

type code struct{}

func (code) Error() string                   { return "code" }
func (code) FailureCode() string             { panic("FailureCode") }
func (code) FailureDetails() json.RawMessage { return nil }

type details struct{ code }

func (details) FailureCode() string             { return "" }
func (details) FailureDetails() json.RawMessage { panic("FailureDetails") }

type final struct{}

func (final) Error() string   { return "final" }
func (final) Permanent() bool { panic("Permanent") }

type later struct{}

func (later) Error() string             { return "later" }
func (later) RetryAfter() time.Duration { panic("RetryAfter") }

func TestAnErrorWhoseMethodsPanicIsUnreadable(t *testing.T) {
	var none *pointer
	for _, err := range []error{none, (*unwraps)(nil), is{}, as{}, code{}, details{}, final{}, later{}} {
		for _, err := range []error{err, fmt.Errorf("around: %w", err), errors.Join(context.Canceled, err)} {
			t.Run(fmt.Sprintf("%T", err), func(t *testing.T) {
				unreadable := readable.Error(err)
				require.ErrorContains(t, unreadable, fmt.Sprintf("of type %T, panics when it is read", err))
				require.Nil(t, errors.Unwrap(unreadable))
			})
		}
	}
}

// around is an error whose text and chain follow what it wraps.
type around struct{ inner []error }

func (a *around) Error() string   { return "around: " + a.inner[0].Error() }
func (a *around) Unwrap() []error { return a.inner }

// Without a bound errors.Is does not return, and the text of such an error ends the process.
func TestAnErrorThatWrapsItselfIsUnreadable(t *testing.T) {
	chain := &pointer{}
	chain.cause = chain
	tree, doubled := &around{}, &around{}
	tree.inner, doubled.inner = []error{context.Canceled, tree}, []error{doubled, doubled}
	pair := &pointer{&pointer{}}
	pair.cause.(*pointer).cause = pair
	for name, err := range map[string]error{"chain": chain, "pair": pair, "tree": tree, "doubled": doubled} {
		for _, err := range []error{err, errors.Join(context.Canceled, err)} {
			require.ErrorContains(t, readable.Error(err), fmt.Sprintf("of type %T, wraps itself", err), name)
		}
	}
	long := errors.New("last")
	for range 1_000 {
		long = &unwraps{pointer{long}}
	}
	require.NoError(t, readable.Error(long))
}

func TestOtherErrorsAreReadable(t *testing.T) {
	require.NoError(t, readable.Error(nil))
	require.NoError(t, readable.Error(&pointer{context.Canceled}))
	require.NoError(t, readable.Error(fmt.Errorf("a: %w; b: %w", context.Canceled, errors.New("b"))))
}
