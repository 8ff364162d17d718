package domain_test

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/domain"
)

type (
	faithfulLine  struct{ Name, Text string }
	faithfulOrder struct {
		Customer string `json:"customer" validate:"required"`
		N        int8
		Big      uint64
		Amount   float64
		Share    float32
		Done     bool
		Data     []byte
		Lines    []faithfulLine
		Pair     [2]faithfulLine
		ByName   map[string]faithfulLine
		ByNumber map[int][]string
	}
)

func TestIsFaithful(t *testing.T) {
	for _, c := range []struct {
		t        reflect.Type
		faithful bool
	}{
		{reflect.TypeFor[faithfulOrder](), true},
		{reflect.TypeFor[string](), true},
		{reflect.TypeFor[[]int](), true},
		{reflect.TypeFor[struct{ A *int }](), false},
		{reflect.TypeFor[struct{ A any }](), false},
		{reflect.TypeFor[struct {
			A string `json:"-"`
		}](), false},
		{reflect.TypeFor[struct {
			A []int `json:",omitempty"`
		}](), false},
		{reflect.TypeFor[struct {
			A int `json:"a,string"`
		}](), false},
		{reflect.TypeFor[struct{ faithfulLine }](), false},
		{reflect.TypeFor[struct{ a int }](), false},
		{reflect.TypeFor[struct {
			A int `json:"x"`
			B int `json:"X"`
		}](), false},
		{reflect.TypeFor[struct{ L []loud }](), false},
		{reflect.TypeFor[struct{ M map[plainName]quiet }](), false},
		{reflect.TypeFor[time.Time](), false},
		{reflect.TypeFor[time.Duration](), false},
		{reflect.TypeFor[json.RawMessage](), false},
		{reflect.TypeFor[complex128](), false},
		{reflect.TypeFor[chan int](), false},
	} {
		require.Equal(t, c.faithful, domain.IsFaithful(c.t), "%v", c.t)
	}
}

// What is written of a faithful type is what reading and writing it again gives, but for text that was not UTF-8.
func TestFaithfulValuesAreWrittenAsTheyAreReadAndWritten(t *testing.T) {
	for _, v := range []faithfulOrder{
		{Customer: "c"},
		{Customer: "<&>\u2028\x00\"\\ \ufffd é", N: -128, Big: math.MaxUint64, Amount: math.Copysign(0, -1), Share: 0.1, Done: true},
		{Customer: "c", Amount: 1e21, Share: math.MaxFloat32, Data: []byte{}, Lines: []faithfulLine{}, ByName: map[string]faithfulLine{}},
		{Customer: "c", Data: []byte{0, 255}, Lines: []faithfulLine{{"a", "b"}}, Pair: [2]faithfulLine{{"x", ""}, {}},
			ByName: map[string]faithfulLine{"b": {}, "a": {Text: "é"}}, ByNumber: map[int][]string{10: nil, 9: {"", "z"}}},
	} {
		written, err := domain.Encode(v)
		require.NoError(t, err)
		again, err := domain.Canonical[faithfulOrder](written)
		require.NoError(t, err)
		require.Equal(t, string(again), string(written))
		require.False(t, domain.Corrected(written))
	}
	written, err := domain.Encode(faithfulOrder{Customer: "no \xff text"})
	require.NoError(t, err)
	require.True(t, domain.Corrected(written))
}
