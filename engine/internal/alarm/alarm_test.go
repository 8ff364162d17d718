package alarm_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/alarm"
	"github.com/tasq-dev/tasq/internal/virtual"
	"github.com/tasq-dev/tasq/retry"
)

// world is a clock and what was called.
type world struct {
	clock  *virtual.Clock
	alarms *alarm.Clock
	start  time.Time
	called []string
}

func newWorld() *world {
	w := &world{clock: virtual.NewClock()}
	w.alarms, w.start = alarm.New(w.clock), w.clock.Now()
	return w
}

// at has a name noted so long after the start.
func (w *world) at(after time.Duration, name string) (stop func()) {
	return w.alarms.At(w.start.Add(after).UnixMicro(), func() { w.called = append(w.called, name) })
}

// pass moves the clock second by second, as time does.
func (w *world) pass(d time.Duration) {
	for end := w.clock.Now().Add(d); w.clock.Now().Before(end); {
		w.clock.Set(w.clock.Now().Add(time.Second))
	}
}

func TestAlarmsAreCalledInTheOrderOfTheirTimes(t *testing.T) {
	w := newWorld()
	w.at(2*time.Second, "second")
	w.at(time.Second, "first")
	w.at(2*time.Second, "third, set later")
	stop := w.at(2*time.Second, "stopped")
	w.at(time.Hour, "in an hour")
	stop()
	stop() // once more changes nothing
	w.pass(3 * time.Second)
	require.Equal(t, []string{"first", "second", "third, set later"}, w.called)
}

func TestATimeThatIsOverIsCalledAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alarms, called := alarm.New(retry.SystemClock), false
		alarms.At(time.Now().Add(-time.Minute).UnixMicro(), func() { called = true })
		synctest.Wait()
		require.True(t, called)
	})
}

// The clock may be set: what it then shows counts, not the time that has passed.
func TestTheClockIsSet(t *testing.T) {
	w := newWorld()
	w.at(time.Hour, "in an hour")
	w.clock.Set(w.start.Add(-time.Hour))
	w.pass(90 * time.Minute)
	require.Empty(t, w.called, "it shows half an hour")
	w.clock.Set(w.start.Add(2 * time.Hour))
	w.pass(2 * time.Second)
	require.Equal(t, []string{"in an hour"}, w.called)
}

func TestNothingIsCalledAfterClose(t *testing.T) {
	w := newWorld()
	w.at(time.Second, "one")
	w.alarms.Close()
	w.at(time.Second, "two")
	w.pass(3 * time.Second)
	require.Empty(t, w.called)
}
