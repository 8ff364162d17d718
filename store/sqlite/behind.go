package sqlite

import (
	"log/slog"
	"time"
)

// behind is a persistent failure to write the tables, which stay behind the journal. The zero value is no failure.
type behind struct {
	times         int
	since, logged time.Time
}

const (
	// behindPace is how often a persistent failure is logged.
	behindPace = time.Minute
	// behindWait is the longest wait before the tables are tried again.
	behindWait = 5 * time.Second
)

// again records another failure, and returns how long to wait: at first age, then twice as long as before.
//
// With an age of 100 ms the tables are written again after 0.1, 0.2, 0.4 ... seconds, then every 5 seconds. Commands
// continue meanwhile: the journal can often be written when the tables cannot, for example if a page of a table is
// damaged.
func (b *behind) again(log *slog.Logger, now time.Time, path string, err error, age time.Duration) time.Duration {
	if b.times++; b.times == 1 {
		b.since = now
	}
	if b.times == 1 || now.Sub(b.logged) >= behindPace || now.Before(b.logged) {
		b.logged = now
		log.Error("the tables could not be brought up to date; the journal has everything, and it is tried again",
			"database", path, "error", err, "times", b.times, "since", b.since)
	}
	if age >= behindWait {
		return age
	}
	return min(age<<min(b.times-1, 16), behindWait)
}

// over records that the tables were written.
func (b *behind) over(log *slog.Logger, path string) {
	if b.times > 0 {
		log.Info("the tables are up to date again", "database", path, "times", b.times, "since", b.since)
	}
	*b = behind{}
}
