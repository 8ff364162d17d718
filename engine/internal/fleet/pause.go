package fleet

import "time"

// pause is the time between two Ticks. It is long while all is quiet, and ends early when something begins, so that there is no more than one
// Tick in the time that is soon:
//
//	Tick ── soon ──┬── quiet ── Tick             nothing begins
//	               ├── Tick                      something began before
//	               ├─ quiet ─┤ Tick              something begins here
//	               ├─ quiet ─┤── soon ── Tick    another engine does something, and is looked at once more after that
//
// The zero value is a pause that nothing ends early. It belongs to the goroutine of the member.
type pause struct {
	soon   time.Duration // 0: nothing ends it early
	rest   time.Duration // what follows on the first part; 0 in the last part
	quiet  bool          // it is in its last part, and something may end it
	early  bool          // something has begun
	others bool          // another engine did something, which may have had no time to say that it is busy
}

// start begins the pause after a Tick.
func (p *pause) start(timer *time.Timer, next time.Duration) {
	if p.soon > 0 && next > p.soon {
		p.rest = next - p.soon
		next = p.soon
	}
	timer.Reset(next)
}

// goesOn reports whether the pause is not over when the timer ends.
func (p *pause) goesOn(timer *time.Timer) bool {
	if p.rest == 0 || p.early {
		return false
	}
	timer.Reset(p.rest)
	p.rest, p.quiet = 0, true
	return true
}

// begin notes that something has begun here.
func (p *pause) begin(timer *time.Timer) {
	if p.early = true; p.quiet {
		p.quiet = false
		timer.Reset(0)
	}
}

// noteOthers notes that another engine did something.
func (p *pause) noteOthers(timer *time.Timer) {
	p.early, p.others = true, true
	if p.quiet {
		p.quiet = false
		timer.Reset(p.soon)
	}
}
