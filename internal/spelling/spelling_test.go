package spelling

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func ExampleClosest() {
	fmt.Println(Closest("aproved", []string{"note", "approved"}))
	// Output: approved
}

func TestClosest(t *testing.T) {
	for _, c := range []struct{ word, known, want string }{
		{"edn", "end start", "end"},
		{"stop", "show start", ""},
		{"NAME", "id name", "name"},
		{"titel", "Title text", "Title"},
		{"x", "a b", ""}, // another letter is another word
		{"", "a", ""},
		{"anything", "", ""},
		{strings.Repeat("x", 65), strings.Repeat("x", 64), ""},
		{strings.Repeat("x", 63), strings.Repeat("x", 64), strings.Repeat("x", 64)},
	} {
		require.Equal(t, c.want, Closest(c.word, strings.Fields(c.known)), "%+v", c)
	}
}
