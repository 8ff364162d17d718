package dispatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// What the lines of a queue answer from their heaps is what a look at every line gives, whatever comes, leaves and
// begins, and however the clock is set.
func TestLinesAnswerAsALookAtAllOfThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := &workflow.Batch{Batching: workflow.Batching{Most: rapid.IntRange(1, 4).Draw(t, "most"), Wait: time.Duration(rapid.IntRange(0, 9).Draw(t, "wait")) * time.Microsecond}}
		b, q := new(batches), new(jobQueue)
		b.lineOf(spec, nil)
		var waiting []entry
		now, id := int64(100), byte(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1, 2:
				id++
				key := lineKey{spec, fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "key"))}
				n := entry{job: workitem.JobID{id}, due: now - rapid.Int64Range(0, 5).Draw(t, "overdue"), priority: rapid.Int32Range(0, 2).Draw(t, "priority"), queue: q, batch: &key}
				b.gather(n)
				waiting = append(waiting, n)
			case 3:
				if len(waiting) > 0 {
					i := rapid.IntRange(0, len(waiting)-1).Draw(t, "canceled")
					b.leave(waiting[i].job)
					waiting = append(waiting[:i], waiting[i+1:]...)
				}
			case 4:
				now += rapid.Int64Range(-12, 12).Draw(t, "clock")
			default:
				if line := q.lines.next(now); line != nil {
					n := b.pop(line)
					q.lines.place(line)
					waiting = without(waiting, n.job)
				}
			}
			requireLines(t, q, waiting, now)
		}
	})
}

func without(list []entry, job workitem.JobID) (rest []entry) {
	for _, n := range list {
		if n.job != job {
			rest = append(rest, n)
		}
	}
	return rest
}

// requireLines compares the lines with those that the jobs that wait would make.
func requireLines(t *rapid.T, q *jobQueue, waiting []entry, now int64) {
	of := make(map[lineKey][]entry)
	for _, n := range waiting {
		of[*n.batch] = append(of[*n.batch], n)
	}
	var first *entry
	due, full := int64(never), 0
	for key, list := range of {
		oldest, head := list[0].due, &list[0]
		for i := range list {
			oldest = min(oldest, list[i].due)
			if byPriority(&list[i], head) {
				head = &list[i]
			}
		}
		full += len(list) / key.spec.Most
		then := oldest + key.spec.Wait.Microseconds()
		if len(list) < key.spec.Most && then > now {
			due = min(due, then)
		} else if first == nil || byPriority(head, first) {
			first = head
		}
	}
	require.Len(t, q.lines.all, len(of))
	require.Equal(t, full, q.lines.batches)
	next := q.lines.next(now)
	require.Equal(t, first == nil, next == nil)
	if next == nil {
		require.Equal(t, due, q.lines.due(now))
		return
	}
	require.Equal(t, first.job, next.ready[0].job)
	require.GreaterOrEqual(t, q.lines.due(now), due, "a line that could begin before the clock was set back is looked at when those before it have begun")
}

// A turn looks at the first lines alone: with thousands of keys, one more job costs as much as with few.
func BenchmarkLinesOfManyKeys(b *testing.B) {
	for _, keys := range []int{10, 10_000} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			spec := &workflow.Batch{Batching: workflow.Batching{Most: 100, Wait: time.Hour}}
			l, q := new(batches), new(jobQueue)
			l.lineOf(spec, nil)
			for k := range keys {
				l.gather(entry{job: workitem.JobID{1, byte(k >> 8), byte(k)}, due: 1, queue: q, batch: &lineKey{spec, fmt.Sprint(k)}})
			}
			n := entry{job: workitem.JobID{2}, due: 2, queue: q, batch: &lineKey{spec, "0"}}
			b.ResetTimer()
			for range b.N {
				l.gather(n)
				q.lines.next(3)
				q.lines.due(3)
				l.leave(n.job)
			}
		})
	}
}
