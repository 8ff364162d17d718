package schedule

import "time"

// A zone is a sequence of periods, in each of which its clocks run evenly. Where one ends, the clocks are put forward,
// which skips readings, or back, which repeats some. A reading is what a clock shows, as a time in UTC.

// reading is what clocks show at t, whose location is their zone.
func reading(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// shown returns the first reading that clocks had not shown when a period began: where they were put back, those before it
// are repeated; where they were put forward, those from it on are skipped. The period before is enough to look at: in no
// zone were clocks put back again before they had shown all that they repeated.
func shown(start time.Time) time.Time { return reading(start.Add(-1)).Add(1) }

// at is a time with what clocks show, and the period that it lies in.
type at struct {
	t          time.Time
	start, end time.Time // of the period; zero if it has none
}

func locate(t time.Time, zone *time.Location) at {
	t = t.In(zone)
	start, end := t.ZoneBounds()
	if !end.IsZero() && !end.After(t) {
		// From 2038 on ZoneBounds ends leap years a day early, and says on 31 December that the period is over. No
		// clocks are put forward or back on that day.
		end = t.Add(time.Hour)
	}
	return at{t, start, end}
}

// when returns the time in this period at which clocks show a reading; false if they do not, before the period ends.
func (p at) when(r time.Time) (time.Time, bool) {
	if r.IsZero() {
		return time.Time{}, false
	}
	t := p.t.Add(r.Sub(reading(p.t)))
	return t, p.end.IsZero() || t.Before(p.end)
}

// nextTick returns the first tick after a time, zero if there is none. A tick is a time at which clocks show a reading
// that matches. If the expression does not have all hours, each reading of a day is one tick: a repeated one is none when
// it is shown again, and those that are skipped are one tick, at the moment at which the clocks are put forward.
func (c *cron) nextTick(after time.Time, zone *time.Location) time.Time {
	t := after.Truncate(time.Second).Add(time.Second)
	for limit := t.AddDate(2*longest, 0, 0); t.Before(limit); {
		p := locate(t, zone)
		from := reading(p.t)
		if !c.anyHour && !p.start.IsZero() {
			unseen := shown(p.start)
			begin := reading(p.start)
			if !p.t.After(p.start) && unseen.Before(begin) {
				if skipped := c.next(unseen); !skipped.IsZero() && skipped.Before(begin) {
					return p.start
				}
			}
			if from.Before(unseen) {
				from = unseen
			}
		}
		next := c.next(from)
		if found, ok := p.when(next); ok {
			return found
		}
		if p.end.IsZero() || next.IsZero() {
			return time.Time{}
		}
		t = p.end
	}
	return time.Time{}
}
