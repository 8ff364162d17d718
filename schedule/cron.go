package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrInvalid is wrapped by every error about an invalid schedule, cron expression or window.
var ErrInvalid = errors.New("invalid schedule")

// cron is a parsed expression: for each field the set of its values, as bits.
type cron struct {
	second, minute, hour, day, month, weekday uint64

	anyDay, anyWeekday bool // the field is * or ?
	anyHour            bool // the field has all 24 hours
}

// field is the form of a field.
type field struct {
	name     string
	min, max int
	names    []string // of the values from min on
}

var (
	secondField  = field{"second", 0, 59, nil}
	minuteField  = field{"minute", 0, 59, nil}
	hourField    = field{"hour", 0, 23, nil}
	dayField     = field{"day of month", 1, 31, nil}
	monthField   = field{"month", 1, 12, strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec")}
	weekdayField = field{"day of week", 0, 7, strings.Fields("sun mon tue wed thu fri sat")}
)

// descriptors are the names that stand for an expression.
var descriptors = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// parseCron reads five fields (minute, hour, day of month, month, day of week), six with a second in front, or a name
// such as @daily.
func parseCron(text string) (c cron, err error) {
	expression := strings.TrimSpace(text)
	if strings.HasPrefix(expression, "@") {
		full, ok := descriptors[strings.ToLower(expression)]
		if !ok {
			return c, fmt.Errorf("%w: cron %q: use @hourly, @daily, @weekly, @monthly, @yearly, or Every for an interval",
				ErrInvalid, text)
		}
		expression = full
	}
	if strings.HasPrefix(expression, "TZ=") || strings.HasPrefix(expression, "CRON_TZ=") {
		return c, fmt.Errorf("%w: cron %q: set the Zone of the schedule instead", ErrInvalid, text)
	}
	fields := strings.Fields(expression)
	switch len(fields) {
	case 5:
		fields = slices.Insert(fields, 0, "0")
	case 6:
	default:
		return c, fmt.Errorf("%w: cron %q has %d fields: use minute, hour, day of month, month, day of week, "+
			"with or without a second in front", ErrInvalid, text, len(fields))
	}
	for i, f := range []struct {
		form field
		set  *uint64
	}{
		{secondField, &c.second}, {minuteField, &c.minute}, {hourField, &c.hour},
		{dayField, &c.day}, {monthField, &c.month}, {weekdayField, &c.weekday},
	} {
		if *f.set, err = f.form.parse(fields[i]); err != nil {
			return c, fmt.Errorf("%w: cron %q: %w", ErrInvalid, text, err)
		}
	}
	if c.weekday&(1<<7) != 0 { // 7 is Sunday as well
		c.weekday = c.weekday&^(1<<7) | 1
	}
	c.anyDay, c.anyWeekday = isAny(fields[3]), isAny(fields[5])
	c.anyHour = c.hour == 1<<24-1
	if c.next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return c, fmt.Errorf("%w: cron %q: no year has such a day", ErrInvalid, text)
	}
	return c, nil
}

func isAny(text string) bool { return text == "*" || text == "?" }

// parse reads a list of values, ranges and steps: 1,5-7,*/10.
func (f field) parse(text string) (set uint64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		first, last, step, err := f.parsePart(part)
		if err != nil {
			return 0, err
		}
		for n := first; n <= last; n += step {
			set |= 1 << n
		}
	}
	return set, nil
}

func (f field) parsePart(part string) (first, last, step int, err error) {
	span, by, stepped := strings.Cut(part, "/")
	step = 1
	if stepped {
		if step, err = strconv.Atoi(by); err != nil || step < 1 || step > f.max {
			return 0, 0, 0, fmt.Errorf("the step %q of the %s is none: use 1 to %d", by, f.name, f.max)
		}
	}
	if isAny(span) {
		last = f.max
		if f.max == 7 {
			last = 6
		}
		return f.min, last, step, nil
	}
	from, to, ranged := strings.Cut(span, "-")
	if first, err = f.value(from); err != nil {
		return 0, 0, 0, err
	}
	switch {
	case ranged:
		if last, err = f.value(to); err != nil {
			return 0, 0, 0, err
		}
		if last == 0 && f.max == 7 && first > 0 {
			last = 7 // fri-sun
		}
	case stepped:
		last = f.max
	default:
		last = first
	}
	if last < first {
		return 0, 0, 0, fmt.Errorf("the range %q of the %s goes backwards: use two ranges, %s-%d,%d-%s",
			span, f.name, from, f.max, f.min, to)
	}
	return first, last, step, nil
}

// value reads a number or a name.
func (f field) value(text string) (int, error) {
	if i := slices.Index(f.names, strings.ToLower(text)); i >= 0 {
		return f.min + i, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < f.min || n > f.max || strings.ContainsAny(text, "+-") {
		also := ""
		if len(f.names) > 0 {
			also = fmt.Sprintf(", or %s to %s", f.names[0], f.names[len(f.names)-1])
		}
		return 0, fmt.Errorf("the %s is %q: use %d to %d%s", f.name, text, f.min, f.max, also)
	}
	return n, nil
}

// onDay reports whether a day matches. If neither the day of month nor the day of week is *, one of them is enough.
func (c *cron) onDay(t time.Time) bool {
	day, weekday := c.day&(1<<t.Day()) != 0, c.weekday&(1<<t.Weekday()) != 0
	if c.anyDay || c.anyWeekday {
		return day && weekday
	}
	return day || weekday
}

// longest is how many years an expression may have to wait: 29 February is missing from 1897 to 1903.
const longest = 8

// next returns the first reading of a clock that matches, at or after from; zero if there is none in the next years.
// Readings are times in UTC, which has no gaps.
func (c *cron) next(from time.Time) time.Time {
	t := from
	if t.Nanosecond() > 0 {
		t = t.Truncate(time.Second).Add(time.Second)
	}
	for end := t.Year() + longest; t.Year() <= end; {
		year, month, day := t.Date()
		hour, minute, second := t.Clock()
		switch {
		case c.month&(1<<month) == 0:
			t = time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC)
		case !c.onDay(t):
			t = time.Date(year, month, day+1, 0, 0, 0, 0, time.UTC)
		case c.hour&(1<<hour) == 0:
			t = time.Date(year, month, day, hour+1, 0, 0, 0, time.UTC)
		case c.minute&(1<<minute) == 0:
			t = time.Date(year, month, day, hour, minute+1, 0, 0, time.UTC)
		case c.second&(1<<second) == 0:
			t = time.Date(year, month, day, hour, minute, second+1, 0, time.UTC)
		default:
			return t
		}
	}
	return time.Time{}
}
