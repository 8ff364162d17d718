package admission

import (
	"slices"

	"github.com/tasq-dev/tasq/engine/internal/quota"
	"github.com/tasq-dev/tasq/limit"
)

// portion is what the store has granted for some time: a portion of a rate, or slots.
type portion struct {
	limit.Grant
	left  int64 // the amount that no job has taken
	fresh int64 // jobs may take what is left until then
	end   int64 // jobs have to begin until then; 0 for slots
	joins int   // Gate.joins when it was granted
	stop  func() bool
}

// stopTimer stops the timer that returns what is left.
func (p *portion) stopTimer() {
	if p != nil && p.stop != nil {
		p.stop()
	}
}

// left returns the amount of the portion, or the slots, that no job has taken.
func (s *share) left() int64 {
	if s.portion == nil {
		return 0
	}
	return s.portion.left
}

// drop ends the portion without returning anything of it.
func (s *share) drop() {
	s.portion.stopTimer()
	s.portion = nil
}

// close ends the portion of a rate. The next order returns what is left of it.
func (s *share) close() {
	if p := s.portion; p != nil && p.left > 0 {
		n, grant := s.note(), p.Grant
		n.back, n.spent = &grant, p.N-p.left
	}
	s.drop()
}

// copy returns a copy on which acquisitions can be tried; nil of nil.
func (s *share) copy() *share {
	if s == nil {
		return nil
	}
	c := *s
	if s.portion != nil {
		p := *s.portion
		c.portion = &p
	}
	return &c
}

// notes is what a share has to return with its next orders, and what it knows of the wait of its first ticket.
type notes struct {
	back        *limit.Grant // a portion to return with the next order
	spent       int64        // the amount of back that was used
	corrections []correction // of portions whose jobs used more or less than they took
	ended       []quota.End  // ends of holds that the store does not know yet

	early     int64        // the amount that a job needs here while it waits in another line
	free      int64        // when the store expects room; 0 if time alone gives none
	others    []quota.Hold // the holds that block the first ticket
	preferred *quota.Hold  // to be ordered next; see prefer
	checked   int64        // when Options.Check was last called for others
}

// known returns the notes to read.
func (s *share) known() notes {
	if s.notes == nil {
		return notes{}
	}
	return *s.notes
}

// note returns the notes to change.
func (s *share) note() *notes {
	if s.notes == nil {
		s.notes = new(notes)
	}
	return s.notes
}

// end notes ends of holds for the next order.
func (s *share) end(ended ...quota.End) {
	if len(ended) > 0 {
		s.note().ended = append(s.note().ended, ended...)
	}
}

// expect notes when there is room, and the holds that block the first ticket.
func (s *share) expect(free int64, others []quota.Hold) {
	if s.notes != nil || free != 0 || len(others) > 0 {
		s.note().free, s.note().others = free, others
		s.tidy()
	}
}

// tidy drops the notes if there is nothing to note.
func (s *share) tidy() {
	n := s.notes
	if !s.returns() && n.early == 0 && n.free == 0 && len(n.others) == 0 && n.preferred == nil && n.checked == 0 {
		s.notes = nil
	}
}

// returns reports whether there is something to return to the store.
func (s *share) returns() bool {
	n := s.known()
	return s.dirty || n.back != nil || len(n.corrections) > 0 || len(n.ended) > 0
}

// takeNotes returns a portion to return or to correct with an order, and drops what the order has. An order has one portion. What is left
// makes the next order due: see Settle.
func (s *share) takeNotes() (back *limit.Grant, used int64) {
	n := s.notes
	if n == nil {
		return nil, 0
	}
	if n.back == nil && len(n.corrections) > 0 {
		first := n.corrections[0]
		n.back, n.spent, n.corrections = &first.took, first.used, slices.Clone(n.corrections[1:])
	}
	back, used = n.back, n.spent
	n.back, n.ended, n.early = nil, nil, 0
	s.tidy()
	return back, used
}
