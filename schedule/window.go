package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Window is a part of the day in which work may start, on all days or some: 08:00 to 18:00 in Europe/Berlin. It is a comparable
// value: two windows that were parsed from the same text and zone are equal. It follows the local time of the zone: on a day of
// a clock change it is shorter or longer, and if its opening time is skipped, it opens at the moment of the change. The zero
// value is always open.
type Window struct {
	from, to time.Duration // since midnight; to is at most from for one over midnight
	days     uint64        // of the opening, as bits from Sunday on
	zone     string
	loc      *time.Location
	text     string
}

// ParseWindow reads a window such as "08:00-18:00", "mon-fri 08:00-18:00", "22:00-06:00" over midnight, or "sat,sun" for
// whole days, in a zone of the tz database ("" is UTC, since the zone of the machine may differ between engines). The day is that of the opening: "fri 22:00-06:00" lasts until
// Saturday. The end does not belong to it; 24:00 is the end of the day. The error is [ErrInvalid].
func ParseWindow(text, zone string) (Window, error) {
	fail := func(format string, args ...any) (Window, error) {
		return Window{}, fmt.Errorf("%w: window %q: %s", ErrInvalid, text, fmt.Sprintf(format, args...))
	}
	loc, err := Location(zone)
	if err != nil {
		return fail("%v", err)
	}
	w := Window{days: 1<<7 - 1, to: 24 * time.Hour, loc: loc, zone: zone, text: strings.Join(strings.Fields(text), " ")}
	fields := strings.Fields(strings.ToLower(text))
	if len(fields) == 0 || len(fields) > 2 {
		return fail("use days, times or both: mon-fri 08:00-18:00")
	}
	if len(fields) == 2 || !strings.Contains(fields[0], ":") {
		if w.days, err = weekdayField.parse(fields[0]); err != nil {
			return fail("%v", err)
		}
		if w.days&(1<<7) != 0 {
			w.days = w.days&^(1<<7) | 1
		}
		fields = fields[1:]
	}
	if len(fields) == 1 {
		from, to, ok := strings.Cut(fields[0], "-")
		if !ok {
			return fail("the times %q are no two: use 08:00-18:00", fields[0])
		}
		if w.from, ok = clock(from); !ok || w.from == 24*time.Hour {
			return fail("%q is no time of day: use 00:00 to 23:59", from)
		}
		if w.to, ok = clock(to); !ok {
			return fail("%q is no time of day: use 00:00 to 24:00", to)
		}
		if w.from == w.to {
			return fail("it ends as it begins: use 00:00-24:00 for whole days")
		}
	}
	return w, nil
}

// MustParseWindow is like [ParseWindow] but panics on an error. It is for windows that are part of a definition.
func MustParseWindow(text, zone string) Window {
	w, err := ParseWindow(text, zone)
	if err != nil {
		panic(err)
	}
	return w
}

// MarshalText implements [encoding.TextMarshaler], with the text of [Window.String].
func (w Window) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler]. It reads what MarshalText has written: a window, and its zone as the last word.
func (w *Window) UnmarshalText(text []byte) (err error) {
	if string(text) == always {
		*w = Window{}
		return nil
	}
	window, zone := string(text), ""
	if i := strings.LastIndexByte(window, ' '); i >= 0 {
		window, zone = window[:i], window[i+1:]
	}
	*w, err = ParseWindow(window, zone)
	return err
}

// IsZero reports whether it is the zero value, which is always open.
func (w Window) IsZero() bool { return w == Window{} }

// clock reads a time of day, 24:00 at most.
func clock(text string) (time.Duration, bool) {
	hours, minutes, ok := strings.Cut(text, ":")
	h, errHour := strconv.ParseUint(hours, 10, 8)
	m, errMinute := strconv.ParseUint(minutes, 10, 8)
	d := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
	return d, ok && errHour == nil && errMinute == nil && len(minutes) == 2 && m < 60 && d <= 24*time.Hour
}

// always is the text of the zero value.
const always = "always"

// String returns the text that the window was read from, and its zone: "mon-fri 08:00-18:00 Europe/Berlin".
func (w Window) String() string {
	if w.loc == nil {
		return always
	}
	if w.zone == "" {
		return w.text + " UTC"
	}
	return w.text + " " + w.zone
}

// Text returns the text that the window was read from, without its zone: "mon-fri 08:00-18:00"; "always" for the zero value.
func (w Window) Text() string {
	if w.loc == nil {
		return always
	}
	return w.text
}

// Location returns the zone of the window, UTC for the zero value.
func (w Window) Location() *time.Location {
	if w.loc == nil {
		return time.UTC
	}
	return w.loc
}

// Contains reports whether the window is open at a time.
func (w Window) Contains(t time.Time) bool {
	if w.loc == nil {
		return true
	}
	return w.shows(reading(t.In(w.loc)))
}

// shows reports whether it is open when clocks show a reading.
func (w Window) shows(r time.Time) bool {
	of := r.Sub(midnight(r))
	today, before := w.days&(1<<r.Weekday()) != 0, w.days&(1<<((r.Weekday()+6)%7)) != 0
	if w.from < w.to {
		return today && w.from <= of && of < w.to
	}
	return today && of >= w.from || before && of < w.to
}

// midnight is the beginning of the day of a reading.
func midnight(r time.Time) time.Time {
	year, month, day := r.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// Open returns the first time from t on at which the window is open: t itself if it is open then.
func (w Window) Open(t time.Time) time.Time { return w.change(t, true) }

// Close returns the first time from t on at which the window is closed: t itself if it is closed then, and the zero time
// if it is always open.
func (w Window) Close(t time.Time) time.Time { return w.change(t, false) }

// change returns the first time from t on at which the window is open, or is not. Within a period of the zone it can
// change only when clocks show its ends; and where a period begins.
func (w Window) change(t time.Time, open bool) time.Time {
	if w.loc == nil && !open {
		return time.Time{}
	}
	for limit := t.AddDate(0, 0, 15); t.Before(limit); {
		if w.Contains(t) == open {
			return t
		}
		p := locate(t, w.loc)
		next := p.end
		for _, edge := range []time.Duration{w.from, w.to} {
			r := reading(p.t)
			at := midnight(r).Add(edge % (24 * time.Hour))
			if !at.After(r) {
				at = at.AddDate(0, 0, 1)
			}
			if found, ok := p.when(at); ok && (next.IsZero() || found.Before(next)) {
				next = found
			}
		}
		t = next
	}
	return time.Time{}
}
