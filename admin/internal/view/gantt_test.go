package view

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// attemptsOf returns attempts of one piece of work, the newest first, that failed after a second each, and one that is due at a time.
func attemptsOf(task string, failed int, due time.Time) (all []*store.ItemRow) {
	for i := range failed + 1 {
		it := &workitem.Item{ID: workitem.ID{byte(len(task)), byte(i + 1)}, Task: task, Generation: 1, Number: i + 1, Attempt: i + 1, State: workitem.Initialized,
			Created: noon.Add(time.Duration(i) * 10 * time.Second), Due: noon.Add(time.Duration(i) * 15 * time.Second)}
		if i < failed {
			it.Started = it.Due
			it.Ended, it.State, it.Successor = it.Started.Add(time.Second), workitem.Failed, workitem.ID{byte(len(task)), byte(i + 2)}
		} else {
			it.Due = due
		}
		all = append([]*store.ItemRow{{Item: it}}, all...)
	}
	return all
}

// All attempts of one piece of work are in one row, the failed ones with a sign, and the time when the next one is due is marked.
func TestTheAttemptsOfOneWorkShareARow(t *testing.T) {
	now := noon.Add(time.Minute)
	items := append(attemptsOf("vote", 3, now.Add(20*time.Second)), attemptsOf("pay", 0, now.Add(-time.Second))...)
	svg := string(gantt(items, noon, time.Time{}, now))
	labels := regexp.MustCompile(`text-anchor="end">([a-z]+\.1\.\d)<`).FindAllStringSubmatch(svg, -1)
	require.Len(t, labels, 2, "one row for each piece of work")
	require.Equal(t, "pay.1.1", labels[0][1])
	require.Equal(t, "vote.1.4", labels[1][1], "the latest attempt names the row")
	rows := regexp.MustCompile(`<rect class="f" x="\d+" y="(\d+)"`).FindAllStringSubmatch(svg, -1)
	require.Len(t, rows, 3)
	require.Equal(t, []string{rows[0][1], rows[0][1]}, []string{rows[1][1], rows[2][1]})
	require.Equal(t, 3, strings.Count(svg, ">✕<"))
	require.Contains(t, svg, ">due in 20s<")
	require.Contains(t, svg, ">now<", "the axis ends when the attempt is due")
	require.Contains(t, svg, "5 work items over time")
	require.NotContains(t, svg, "style=")

	far := string(gantt(attemptsOf("vote", 3, now.Add(time.Hour)), noon, time.Time{}, now))
	require.Contains(t, far, ">→ due in 1h<", "what is far away does not make the rest of the chart too small to see")
	require.NotContains(t, string(gantt(items, noon, now.Add(time.Minute), now.Add(time.Minute))), "due in", "a case that has ended waits for nothing")
}

// Failures that follow one another closely have one sign, and the number of rows is bounded.
func TestDenseChartsAreReadable(t *testing.T) {
	now := noon.Add(100 * time.Hour)
	require.Equal(t, 1, strings.Count(string(gantt(attemptsOf("vote", 30, now), noon, time.Time{}, now)), ">✕<"))
	var many []*store.ItemRow
	for i := range 60 {
		many = append([]*store.ItemRow{{Item: &workitem.Item{ID: workitem.ID{1, byte(i + 1)}, Task: "a", Generation: 1, Number: i + 1, Attempt: 1, Created: noon.Add(time.Duration(i) * time.Second)}}}, many...)
	}
	svg := string(gantt(many, noon, time.Time{}, noon.Add(time.Minute)))
	require.Contains(t, svg, "40 work items over time")
	require.Contains(t, svg, ">a.1.60<")
	require.NotContains(t, svg, ">a.1.20<")
}

// Whatever the length of a case, the axis has a few marks at round times, and no two alike.
func TestTheMarksOfTheChartAreRoundAndDiffer(t *testing.T) {
	const day = 24 * time.Hour
	for whole, want := range map[time.Duration][]string{
		time.Millisecond:           {"0s", "200µs", "400µs", "600µs", "800µs", "1ms"},
		1700 * time.Millisecond:    {"0s", "500ms", "1s", "1.5s"},
		time.Minute:                {"0s", "10s", "20s", "30s", "40s", "50s", "1m"},
		71*time.Hour + time.Minute: {"0s", "12h", "1d", "1d12h", "2d", "2d12h"},
		400 * day:                  {"0s", "100d", "200d", "300d", "400d"},
	} {
		var got []string
		for at := time.Duration(0); at <= whole; at += stepOf(whole) {
			got = append(got, axisTime(at))
		}
		require.Equal(t, want, got, whole)
	}
	for whole := time.Millisecond; whole < 250*365*day; whole += whole/7 + 1 {
		step := stepOf(whole)
		require.LessOrEqual(t, whole/step, time.Duration(6), whole)
		require.GreaterOrEqual(t, whole/step, time.Duration(2), whole)
		seen := make(map[string]bool)
		for at := time.Duration(0); at <= whole; at += step {
			require.False(t, seen[axisTime(at)], "%s: %s", whole, axisTime(at))
			seen[axisTime(at)] = true
		}
	}
}
