// Package schedule computes when things begin: the ticks of cron expressions and intervals in a time zone, and the parts of
// the day in which something may be done. It reads no clock and starts nothing.
//
//	digest, err := schedule.Cron("0 8 * * mon-fri", "Europe/Berlin")
//	next := digest.Next(now)
//
// A [Schedule] is data: what a table keeps and a command changes. Who runs it keeps one time for each schedule, asks
// [Timetable.Due] with it and the present time, begins what belongs to the ticks, stores the new time in the same
// transaction, and asks again at [Due.Next]. So each tick begins once, with any number of processes and after any crash.
//
// # Cron expressions
//
// An expression has the fields minute, hour, day of month, month and day of week, with a second in front if there are
// six. A field is a list of values, ranges and steps: 0,30 or 9-17 or */5 or 10-50/20. * and ? are all values. Months and
// days have names (jan, mon); Sunday is 0 and 7. If neither the day of month nor the day of week is *, one of them is
// enough: 0 0 13 * fri is every 13th and every Friday. @hourly, @daily (@midnight), @weekly, @monthly and @yearly
// (@annually) are names for expressions. An expression that no date matches is an error.
//
// # Changes of clocks
//
// Clocks are put forward and back, by an hour, by half an hour, and once in a while by a whole day. Two kinds of
// expressions mean different things by a time of day:
//
//   - Where the hours are restricted (30 2 * * *, */5 2 * * *), each time of the day is one tick of that day. A time that
//     the clocks show twice is a tick the first time. Times that they skip are one tick together, at the moment at which
//     they are put forward: 02:30 is 03:00 on that day.
//   - Where they are not (*/15 * * * *), the expression means a rhythm. It ticks whenever the clocks show a time that
//     matches: also when they show it again, and not at all when they skip it.
//
// Intervals are not concerned: they count time that passes. The same holds for all zones and all changes; UTC has none.
//
// In Europe/Berlin, where 02:00 became 03:00 on 31 March 2030, and 03:00 became 02:00 on 27 October:
//
//	expression      31 March                27 October
//	30 2 * * *      03:00                   02:30 CEST
//	0,30 2 * * *    03:00                   02:00 CEST, 02:30 CEST
//	30 * * * *      01:30, 03:30            01:30, 02:30 CEST, 02:30 CET, 03:30
package schedule
