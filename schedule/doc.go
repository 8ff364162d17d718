// Package schedule computes when recurring work starts: the ticks of cron expressions and intervals in a time zone, and the
// windows of the day in which work may start. The package reads no clock, starts nothing and stores nothing; every result is
// a function of its arguments. Package engine/schedules uses it to start cases.
//
//	digest, err := schedule.Cron("0 8 * * mon-fri", "Europe/Berlin")
//	next := digest.Next(now)
//
// A [Schedule] is plain data, which can be stored and changed. A program that runs one stores a single time for it, the last
// tick that it has processed, and repeats these steps:
//
//	due := timetable.Due(last, now)    // the ticks since last, after the policies for missed ticks
//	start the work of due.Ticks, and set last = due.Last, in one transaction
//	wait until due.Next
//
// Since the work and the new time are committed together, the work of a tick starts exactly once, with any number of processes
// and after any crash. For digest with the policy [CatchUpLast], when the program was down from Tuesday to Friday:
//
//	call                        Ticks            Last             Next
//	Due(Tue 08:00, Fri 09:30)   Fri 08:00        Fri 08:00        Mon 08:00
//	Due(Fri 08:00, Fri 09:31)   none             Fri 08:00        Mon 08:00
//
// # Cron expressions
//
// An expression has the fields minute, hour, day of month, month and day of week; if there are six fields, the first is the
// second. A field is a list of values, ranges and steps: 0,30 or 9-17 or */5 or 10-50/20. Both * and ? match all values. Months
// and days have names (jan, mon); Sunday is 0 and 7. If both the day of month and the day of week are restricted, a date that
// matches either of them matches: 0 0 13 * fri is every 13th and every Friday. @hourly, @daily (@midnight), @weekly, @monthly
// and @yearly (@annually) are names for expressions. An expression that no date matches is an error.
//
// # Daylight saving time
//
// Clocks are set forward and back, by an hour, by half an hour, and in rare cases by a whole day. What a tick means then depends
// on the hour field:
//
//   - If the hours are restricted (30 2 * * *, */5 2 * * *), each matching time of day is one tick of that day. A time that
//     occurs twice ticks the first time. Times that are skipped become a single tick, at the moment of the change: 02:30 is
//     03:00 on that day.
//   - If they are not (*/15 * * * *), the expression means a frequency. It ticks whenever the clock shows a matching time: both
//     times if that occurs twice, and not at all if it is skipped.
//
// Intervals ([Every]) are not affected: they measure elapsed time. The rules are the same for all zones and all changes; UTC has
// none.
//
// In Europe/Berlin, where 02:00 became 03:00 on 31 March 2030, and 03:00 became 02:00 on 27 October:
//
//	expression      31 March                27 October
//	30 2 * * *      03:00                   02:30 CEST
//	0,30 2 * * *    03:00                   02:00 CEST, 02:30 CEST
//	30 * * * *      01:30, 03:30            01:30, 02:30 CEST, 02:30 CET, 03:30
package schedule
