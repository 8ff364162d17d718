package domain

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type (
	free    struct{ Name string }
	bounded struct {
		Name string `validate:"max=3"`
	}
	tree struct {
		Kids []*tree
		When time.Time
	}
	boundedTree struct {
		Kids []*boundedTree
		In   map[string][2]bounded
	}
	bad struct {
		Name string `validate:"no-such-rule"`
	}
)

func TestATypeWithoutRules(t *testing.T) {
	for _, c := range []struct {
		t        reflect.Type
		ruleless bool
	}{
		{reflect.TypeFor[free](), true},
		{reflect.TypeFor[[]map[string]*free](), true},
		{reflect.TypeFor[tree](), true},
		{reflect.TypeFor[int](), true},
		{reflect.TypeFor[bounded](), false},
		{reflect.TypeFor[struct{ bounded }](), false},
		{reflect.TypeFor[map[bounded]int](), false},
		{reflect.TypeFor[boundedTree](), false},
		{reflect.TypeFor[[]any](), false},
		{reflect.TypeFor[bad](), false},
	} {
		for range 2 { // what was found is kept
			require.Equal(t, c.ruleless, ruleless(c.t), "%v", c.t)
		}
	}
	type ring struct{ Next *ring }
	require.True(t, ruleless(reflect.TypeFor[ring]()))
	deep := &ring{}
	deep.Next = deep
	require.ErrorIs(t, Validate(deep), errTooDeep, "it cannot be written as JSON, rules or not")
}
