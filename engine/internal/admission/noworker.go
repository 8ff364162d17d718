package admission

import "slices"

// A ticket that was made ready leaves its line and enters when a worker takes its job. If all workers of its queue are busy, that can be much
// later, and its room is idle until then. Tickets of other queues, which have workers, pass it:
//
//	slots: 4                     line: A takes 3 (queue mail), B takes 4 (queue files)
//	a job returns its slots  ──▶ A is ready, mail has no worker ──▶ PassOver: files has one, so B is ready, enters and has the slots
//	a worker of mail is free ──▶ A enters, has no room, and waits before those that came after it
//
// A ticket that has waited more than once is not passed: the slots and the workers that it needs could be free in turns, and never together.
// The line waits for it then.

// mayBePassed reports whether later tickets may have the room that a ready ticket does not use.
func (t *Ticket[T]) mayBePassed() bool { return t.ready && t.waits <= 1 }

// PassOver makes the earliest ticket ready that has room and a worker, in each line in which a ready ticket has none. Call it after the jobs that
// are ready had the opportunity to enter, and again after those have entered that it has made ready.
func (g *Gate[T]) PassOver() {
	var lines []*line[T] // of several idle tickets, each once
	g.idle = slices.DeleteFunc(g.idle, func(t *Ticket[T]) bool {
		t.passes = nil
		if !t.mayBePassed() {
			return true
		}
		last := true // none waits behind it; a later one waits only if there is no room
		g.eachLine(t, func(l *line[T]) {
			if l.queue.len() > 0 {
				last = false
				if !slices.Contains(lines, l) {
					lines = append(lines, l)
				}
			}
		})
		return last
	})
	now := g.now()
	for _, l := range lines {
		if p := g.firstFree(l); p != nil && g.waitOf(p, l, now) <= 0 {
			p.t.passes = l
			g.makeReady(p)
		}
	}
}

// IsPassed reports whether a ready ticket has no worker, so that PassOver has something to do when another worker is free.
func (g *Gate[T]) IsPassed() bool { return len(g.idle) > 0 }

// firstFree returns the earliest place of a line whose job has a worker; nil if there is none.
func (g *Gate[T]) firstFree(l *line[T]) (first *place[T]) {
	for _, p := range l.queue.all() {
		if (first == nil || g.o.Before(&p.t.Value, &first.t.Value)) && g.o.Free(&p.t.Value) {
			first = p
		}
	}
	return first
}
