package fleet

import "time"

// pause is the time between two Ticks. It is long while all engines are idle. Activity ends it early, but never before
// its first part, soon, is over: so a busy engine sends at most one Tick per soon.
//
//	Tick ── soon ──┬── quiet ── Tick             no activity
//	               ├── Tick                      activity during soon
//	               ├─ quiet ─┤ Tick              activity of this engine during quiet
//	               ├─ quiet ─┤── soon ── Tick    activity of another engine: it gets time for its own Tick first
//
// The zero value is a pause that nothing ends early. It belongs to the goroutine of the member.
type pause struct {
	soon   time.Duration // the first part; 0: nothing ends the pause early
	rest   time.Duration // the second part; 0 once it has begun
	quiet  bool          // the second part has begun
	early  bool          // there was activity
	others bool          // there was activity of another engine, which may not have sent a Tick yet
}

// start begins the pause after a Tick.
func (p *pause) start(timer *time.Timer, next time.Duration) {
	if p.soon > 0 && next > p.soon {
		p.rest = next - p.soon
		next = p.soon
	}
	timer.Reset(next)
}

// hasSecondPart reports whether the second part of the pause follows when the timer fires.
func (p *pause) hasSecondPart(timer *time.Timer) bool {
	if p.rest == 0 || p.early {
		return false
	}
	timer.Reset(p.rest)
	p.rest, p.quiet = 0, true
	return true
}

// begin records activity of this engine.
func (p *pause) begin(timer *time.Timer) {
	if p.early = true; p.quiet {
		p.quiet = false
		timer.Reset(0)
	}
}

// noteOthers records activity of another engine.
func (p *pause) noteOthers(timer *time.Timer) {
	p.early, p.others = true, true
	if p.quiet {
		p.quiet = false
		timer.Reset(p.soon)
	}
}
