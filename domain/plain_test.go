package domain_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
)

type (
	plainOrder struct {
		Text  string `validate:"required"`
		When  time.Time
		Lasts *time.Duration
		Raw   json.RawMessage
		Any   any
		Lines []struct{ N map[string]int }
		Next  *plainOrder
	}
	plainName string
	loud      struct{ S string }
	quiet     struct{ S string }
	holder    struct {
		Lists []map[string]*quiet
	}
	embedder struct{ quiet }
)

func (loud) IsValid() bool                    { return true }
func (q *quiet) UnmarshalJSON(_ []byte) error { return nil }

func TestIsPlain(t *testing.T) {
	for _, c := range []struct {
		t     reflect.Type
		plain bool
	}{
		{reflect.TypeFor[int](), true},
		{reflect.TypeFor[plainName](), true},
		{reflect.TypeFor[any](), true},
		{reflect.TypeFor[plainOrder](), true},
		{reflect.TypeFor[*plainOrder](), true},
		{reflect.TypeFor[[]plainOrder](), true},
		{reflect.TypeFor[loud](), false},
		{reflect.TypeFor[quiet](), false},
		{reflect.TypeFor[*quiet](), false},
		{reflect.TypeFor[holder](), false},
		{reflect.TypeFor[embedder](), false},
		{reflect.TypeFor[map[[1]quiet]int](), false},
		{reflect.TypeFor[struct{ E error }](), false},
		{reflect.TypeFor[fmt.Stringer](), false},
	} {
		require.Equal(t, c.plain, domain.IsPlain(c.t), "%v", c.t)
	}
}
