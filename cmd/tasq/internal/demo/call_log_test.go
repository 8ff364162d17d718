package demo

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/virtual"
)

func open(t *testing.T, path string) *callLog {
	t.Helper()
	b, err := openCallLog(path, virtual.NewClock())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.close()) })
	return b
}

func TestABankChargesOnceForEachKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "calls")
	first := open(t, path)
	a, err := first.record(call{Party: "bank", About: "A-1", Key: "0123456789"}, idempotent("ch-"))
	require.NoError(t, err)
	require.True(t, a.Did)
	require.Equal(t, "ch-01234567", a.Says)

	second := open(t, path) // by the next process
	again, err := second.record(call{Party: "bank", About: "A-1", Key: "0123456789"}, idempotent("ch-"))
	require.NoError(t, err)
	require.False(t, again.Did)
	require.Equal(t, a.Says, again.Says)
	other, err := second.record(call{Party: "bank", About: "A-1", Key: "x"}, idempotent("ch-"))
	require.NoError(t, err)
	require.True(t, other.Did)

	_, err = first.record(call{Party: "mail server", About: "A-1", Key: "x"}, idempotent("m-"))
	require.NoError(t, err)
	called, did := first.count("bank", "A-1")
	require.Equal(t, []int{3, 2}, []int{called, did}, "what the other process wrote is read, too")
}

func TestCallsToABusyPartyAreRetried(t *testing.T) {
	t.Parallel()
	b := open(t, filepath.Join(t.TempDir(), "calls"))
	var did []bool
	for range 4 {
		c, err := b.record(call{Party: "shop", About: "A-1"}, failFirst(2, "saved"))
		require.NoError(t, err)
		did = append(did, c.Did)
	}
	require.Equal(t, []bool{false, false, true, true}, did)
	c, err := b.record(call{Party: "shop", About: "A-2"}, failFirst(2, "saved"))
	require.NoError(t, err)
	require.Equal(t, "busy", c.Says, "each order is counted for itself")
}

func TestATruncatedLineOfAKilledProcessIsNoCall(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "calls")
	b := open(t, path)
	_, err := b.record(call{Party: "bank", About: "A-1", Key: "k1"}, idempotent("ch-"))
	require.NoError(t, err)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"party":"bank","about":"A-1","key":"k2`)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	b = open(t, path)
	c, err := b.record(call{Party: "bank", About: "A-1", Key: "k2"}, idempotent("ch-"))
	require.NoError(t, err)
	require.True(t, c.Did, "the bank never finished it")
	b = open(t, path)
	called, did := b.count("bank", "A-1")
	require.Equal(t, []int{2, 2}, []int{called, did})
}

func TestACallEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := &services{log: open(t, filepath.Join(t.TempDir(), "calls")), pace: 1 << 40}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.call(ctx, call{Party: "bank", About: "A-1", Key: "k"}, idempotent("ch-"))
	require.ErrorIs(t, err, context.Canceled)
	called, _ := w.log.count("bank", "A-1")
	require.Zero(t, called)
}

func TestWordsForNumbers(t *testing.T) {
	t.Parallel()
	require.Equal(t, "never once twice 3 times", join([]string{times(0) + " " + times(1) + " " + times(2) + " " + times(3)}))
	require.Equal(t, "no mail, one mail and 2 mails", join([]string{count(0, "mail"), count(1, "mail"), count(2, "mail")}))
	require.Equal(t, "", join(nil))
}
