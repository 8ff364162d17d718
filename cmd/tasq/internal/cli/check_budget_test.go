package cli_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/cli"
)

// lock is a workflow whose branches run side by side and share a lock. All its states have to be looked at, and they
// double with each branch.
func lock(branches int) string {
	var tasks, flows strings.Builder
	before, after := "lock", "lock"
	for b := range branches {
		fmt.Fprintf(&tasks, "condition a%d b%d\ntask t%d split=and join=and\n", b, b, b)
		fmt.Fprintf(&flows, "flow a%d -> t%d\nflow lock -> t%d\nflow t%d -> b%d, lock\nflow b%d -> finish\n", b, b, b, b, b, b)
		before += fmt.Sprintf(", a%d", b)
	}
	return "workflow w\nstart i\nend o\ncondition lock\n" + tasks.String() + "task begin split=and\ntask finish join=and\n" +
		"flow i -> begin\nflow begin -> " + before + "\n" + flows.String() + "flow " + after + " -> finish\nflow finish -> o\n"
}

// Each flag for the budget of a check leaves a net open that a larger value of it decides.
func TestBudgetsOfACheckDecide(t *testing.T) {
	t.Parallel()
	model := lock(15)
	for _, flag := range [][3]string{{"--states", "100", "100000"}, {"--memory", "1", "64"}, {"--time", "1ns", "10m"}} {
		for i, want := range []struct {
			code    int
			verdict string
		}{{3, `"verdict":"unknown"`}, {0, `"verdict":"sound"`}} {
			var out, errs bytes.Buffer
			code := cli.Main(t.Context(), []string{"check", "-", "-o", "json", flag[0], flag[1+i]},
				cli.Streams{In: strings.NewReader(model), Out: &out, Err: &errs}, cli.Registry{})
			require.Equal(t, want.code, code, "%v: %s%s", flag, out.String(), errs.String())
			require.Contains(t, out.String(), want.verdict, "%v", flag)
		}
	}
}
