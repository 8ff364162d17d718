package demo_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/demo"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"

	"github.com/tasq-dev/tasq/internal/storehook"
	"github.com/tasq-dev/tasq/internal/testsize"
)

// order is a fast order whose saving fails twice, on a fresh file.
func order(t *testing.T) demo.OrderOptions {
	return demo.OrderOptions{Setting: demo.Setting{DB: filepath.Join(t.TempDir(), "demo.db"), Fast: true}, Failures: 2}
}

var ofSteps = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`), "CASE"},
	{regexp.MustCompile(`(?m)^ *\d+\.\d\ds  `), ""},
	{regexp.MustCompile(`\b(A|u)-[A-Z2-7]{6}\b`), "$1-1"},
	{regexp.MustCompile(`\b(ch|m)-[0-9a-f]{8}\b`), "$1-1"},
	{regexp.MustCompile(`\b(in|for) \d+(\.\d+)?[mµ]?s\b`), "$1 TIME"},
	{regexp.MustCompile(`\S*demo\.db`), "demo.db"},
}

// steady is an output without what differs from run to run.
func steady(output string) string {
	for _, u := range ofSteps {
		output = u.what.ReplaceAllString(output, u.with)
	}
	return output
}

func TestAnOrderIsChargedOnceThoughSavingFails(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, demo.RunOrder(t.Context(), &out, order(t)))
	require.Equal(t, `database: demo.db (new)
calls:    demo.db.calls, written by the bank, the mail server and the shop

case CASE begins: order A-1 of ann@example.com, 49.90 EUR
charge-customer: charged, as ch-1
send-confirmation: mailed, as m-1
save-order failed: busy: the shop's books are closed for now
attempt 2 is due in TIME, with charge-customer and send-confirmation remembered
attempt 2 begins
save-order failed: busy: the shop's books are closed for now
attempt 3 is due in TIME, with charge-customer and send-confirmation remembered
attempt 3 begins
save-order: saved
the case has completed

step               calls  attempts  result
charge-customer    1      1         charged, as ch-1
send-confirmation  1      1         mailed, as m-1
save-order         3      3         saved

The customer was charged once and got one mail; the order was saved once, and
tried 3 times.

All of it is in demo.db. To look around:
  tasq steps -d demo.db --case CASE
  tasq history CASE -d demo.db
  tasq items -d demo.db --case CASE
  sqlite3 demo.db "SELECT value FROM records WHERE collection = 'orders'"
  cat demo.db.calls
`, steady(out.String()))
}

// chargedOnce is what every order that was saved ends with, whatever happened on the way.
const chargedOnce = "The customer was charged once and got one mail; the order was saved once,"

func TestAStoppedOrderGoesOn(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"begins: order", "charge-customer: ", "attempt 2 is due", "attempt 3 is due"} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			o := order(t)
			o.SetWait(300 * time.Millisecond) // time enough to be stopped
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			first := &until{word: word, stop: cancel}
			require.ErrorIs(t, demo.RunOrder(ctx, first, o), context.Canceled)
			require.Contains(t, first.buf.String(), "nothing is lost. To go on: tasq demo order -d "+o.DB)

			var out bytes.Buffer
			require.NoError(t, demo.RunOrder(t.Context(), &out, o))
			id := regexp.MustCompile(`case \S+ begins: order \S+`)
			require.Equal(t, id.FindString(first.buf.String()), id.FindString(out.String()), "the same order")
			require.Contains(t, out.String(), "so far an earlier run")
			require.Contains(t, out.String(), chargedOnce)
		})
	}
}

func TestAnOrderThatCannotBeSavedIsPaidAllTheSame(t *testing.T) {
	t.Parallel()
	o := order(t)
	o.Failures = 5
	var out bytes.Buffer
	err := demo.RunOrder(t.Context(), &out, o)
	require.ErrorIs(t, err, demo.ErrFailed)
	require.ErrorContains(t, err, "busy: ")
	text := strings.Join(strings.Fields(out.String()), " ")
	require.Contains(t, text, "was charged once and got one mail; the order was saved never, and tried 5 times.")
	require.Contains(t, text, "save-order 5 5 busy: the shop's books are closed for now")
	require.Contains(t, text, "To look around")
}

func TestAnOrderOnATerminalIsDrawnInPlace(t *testing.T) {
	t.Parallel()
	o := order(t)
	o.Terminal = true
	var out bytes.Buffer
	require.NoError(t, demo.RunOrder(t.Context(), &out, o))
	text := out.String()
	require.Contains(t, text, "\x1b[32m+ save-order           done     saved\x1b[0m")
	require.Contains(t, text, "\x1b[31mx save-order           failed   busy: the shop's books are closed for now\x1b[0m")
	require.Contains(t, text, "  save-order           -")
	require.NotContains(t, text, "is due in", "no lines")
	o.DB, o.Plain = filepath.Join(t.TempDir(), "demo.db"), true
	out.Reset()
	require.NoError(t, demo.RunOrder(t.Context(), &out, o))
	require.NotContains(t, out.String(), "\x1b[31m")
}

func TestAFileWithTwoOrders(t *testing.T) {
	t.Parallel()
	o := order(t)
	for range 2 {
		var out bytes.Buffer
		require.NoError(t, demo.RunOrder(t.Context(), &out, o))
		require.Contains(t, out.String(), chargedOnce)
		require.Equal(t, 1, strings.Count(out.String(), "begins: order"))
	}
}

// TestAKilledOrderGoesOn kills the demo with SIGKILL at its n-th commit, inside of the transaction and between the
// commit and its acknowledgement, and runs the same command again: until a run has fewer commits than that. In between,
// the bank may have been called without anybody knowing.
func TestAKilledOrderGoesOn(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a dozen processes; run without -short")
	}
	every, called := testsize.Pick(5, 3, 1), 0
	for n := every; ; n += every {
		lived := false
		for _, moment := range []string{"before", "after"} {
			o := order(t)
			lived = lived || !killedAt(t, o.DB, n, moment)
			var out bytes.Buffer
			require.NoError(t, demo.RunOrder(t.Context(), &out, o), "killed %s commit %d", moment, n)
			require.Contains(t, out.String(), chargedOnce, "killed %s commit %d", moment, n)
			called += strings.Count(out.String(), "(called twice, charged once)")
		}
		if lived {
			require.Greater(t, n, 8, "so many commits a run must have")
			require.True(t, every > 1 || called > 0, "of all moments, some are between a call and its record")
			return
		}
	}
}

// killedAt runs the demo in a process of its own that is killed at its n-th commit, and reports whether it was: a run
// may have fewer.
func killedAt(t *testing.T, db string, n int, moment string) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledProcessWithOrders$", "-test.count=1")
	cmd.Env = append(os.Environ(), "TASQ_ORDER="+db, "TASQ_CUT="+strconv.Itoa(n), "TASQ_MOMENT="+moment)
	out, err := cmd.CombinedOutput()
	if err == nil {
		require.Contains(t, string(out), chargedOnce)
		return false
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	require.True(t, ok, "%v\n%s", err, out)
	require.False(t, exit.Exited(), "it must be killed, not fail:\n%s", out)
	return true
}

// TestKilledProcessWithOrders is the process that TestAKilledOrderGoesOn kills; on its own it does nothing.
func TestKilledProcessWithOrders(t *testing.T) {
	t.Parallel()
	db := os.Getenv("TASQ_ORDER")
	if db == "" {
		return
	}
	cut, err := strconv.Atoi(os.Getenv("TASQ_CUT"))
	require.NoError(t, err)
	o := demo.OrderOptions{Setting: demo.Setting{DB: db, Fast: true, Err: os.Stderr}, Failures: 2}
	o.SetOpener(func(path string) store.Opener {
		return &cutter{Opener: sqlite.File(path), n: cut, before: os.Getenv("TASQ_MOMENT") == "before"}
	})
	require.NoError(t, demo.RunOrder(t.Context(), os.Stdout, o))
}

// cutter opens a store that kills the process at its n-th commit.
type cutter struct {
	store.Opener
	n      int
	before bool
}

// Open implements store.Opener.
func (c *cutter) Open(ctx context.Context, o store.Options) (store.Store, error) {
	done := 0
	return (&storehook.Opener{Opener: c.Opener,
		Update: func(run func() error) error {
			done++
			err := run()
			if done == c.n {
				die()
			}
			return err
		},
		Commit: func() error {
			if done == c.n && c.before {
				die()
			}
			return nil
		},
	}).Open(ctx, o)
}

// die is kill -9.
func die() {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {}
}

func TestTheCommandLineOfAnOrder(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "demo.db")
	command := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := demo.Command(t.Context(), nil, &out, io.Discard, args)
		return out.String(), err
	}
	out, err := command("order", "-fast", "-failures", "0", "-d", db)
	require.NoError(t, err)
	require.NotContains(t, out, "attempt 2")
	out, err = command("order", "--fast", "--db", db)
	require.NoError(t, err)
	require.Contains(t, out, "tried 3 times")
	out, err = command("order", "-h")
	require.NoError(t, err)
	require.Contains(t, out, "-failures")
	require.Contains(t, out, demo.DefaultOrderDB)

	_, err = command("order", "-frobnicate")
	require.ErrorIs(t, err, demo.ErrUsage)
	require.ErrorContains(t, err, "see tasq demo order -h")
	_, err = command("order", "a", "pizza")
	require.ErrorIs(t, err, demo.ErrUsage)
	require.ErrorContains(t, err, `tasq demo order takes no "a"; for a prompt of that word, tasq demo -- order a pizza`)
	out, err = command("-d", filepath.Join(t.TempDir(), "demo.db"), "-fast", "-faults", "ok", "--", "order", "a", "pizza")
	require.NoError(t, err)
	require.Contains(t, out, "begins: order a pizza")
	out, err = command("-h")
	require.NoError(t, err)
	for _, name := range []string{"tasq demo [flags] [prompt]", "tasq demo order", "tasq demo onboarding"} {
		require.Contains(t, out, name)
	}
	for line := range strings.Lines(out) {
		require.LessOrEqual(t, len(line), 121, line)
	}
}

func TestAFileThatCannotBeMadeIsNamed(t *testing.T) {
	t.Parallel()
	o := order(t)
	o.DB = filepath.Join(t.TempDir(), "none", "demo.db")
	require.ErrorContains(t, demo.RunOrder(t.Context(), io.Discard, o), o.DB)
	require.ErrorContains(t, demo.Run(t.Context(), io.Discard, demo.Options{Setting: o.Setting, Faults: "ok"}), o.DB)
}

// An order does not touch what another demo left in the file.
func TestAFileOfAnotherDemo(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Faults = "limit 5s"
	interrupted(t, o, "due in 5s")
	var out bytes.Buffer
	require.NoError(t, demo.RunOrder(t.Context(), &out, demo.OrderOptions{Setting: demo.Setting{DB: o.DB, Fast: true}}))
	require.Contains(t, out.String(), chargedOnce)
	out.Reset()
	require.NoError(t, demo.Run(t.Context(), &out, o))
	require.Contains(t, out.String(), "so far an earlier run")
}
