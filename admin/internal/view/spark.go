package view

import (
	"fmt"
	"html/template"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/store"
)

// Sizes of the small chart, in units of its view box: it is scaled to the available width.
const (
	sparkStep = 10 // from one hour to the next
	sparkHigh = 48
)

// spark draws how many work items completed and failed in each hour from a time until now, and counts them. It is empty
// if none did.
func spark(rates []store.Rate, since, now time.Time) (chart template.HTML, done, failed int64) {
	since = since.UTC().Truncate(time.Hour)
	type hour struct{ done, failed int64 }
	hours := make([]hour, int(now.Sub(since)/time.Hour)+1)
	most := int64(1)
	for _, r := range rates {
		i := int(r.Hour.Sub(since) / time.Hour)
		if i < 0 || i >= len(hours) {
			continue
		}
		hours[i].done += int64(r.Done)
		hours[i].failed += int64(r.Failed)
		done, failed = done+int64(r.Done), failed+int64(r.Failed)
		most = max(most, hours[i].done+hours[i].failed)
	}
	if done+failed == 0 {
		return "", 0, 0
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" aria-label="Work items that ended, by hour: %d completed, %d failed">`,
		len(hours)*sparkStep, sparkHigh, done, failed)
	for i, h := range hours {
		title := fmt.Sprintf("%s: %d completed, %d failed", since.Add(time.Duration(i)*time.Hour).Format("15:04"), h.done, h.failed)
		bar := func(class string, n int64, bottom float64) (top float64) {
			if n == 0 {
				return bottom
			}
			high := max(float64(n)/float64(most)*(sparkHigh-4), 2)
			fmt.Fprintf(&b, `<rect class="%s" x="%d" y="%.1f" width="%d" height="%.1f"><title>%s</title></rect>`,
				class, i*sparkStep+1, bottom-high, sparkStep-2, high, title)
			return bottom - high
		}
		bar("f", h.failed, bar("d", h.done, sparkHigh-1))
	}
	fmt.Fprintf(&b, `<path class="axisline" d="M0 %dH%d"/></svg>`, sparkHigh, len(hours)*sparkStep)
	return template.HTML(b.String()), done, failed // #nosec: it has numbers and times only
}
