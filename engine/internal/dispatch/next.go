package dispatch

import "time"

// setAlarm arranges the next turn.
func (s *scheduler) setAlarm(now int64) {
	due := s.hours.due(now)
	if len(s.waiting) > 0 {
		due = min(due, s.waiting[0].due)
	}
	if due == never {
		return
	}
	if s.wake != nil && s.wakeAt == due {
		return
	}
	if s.wake != nil {
		s.wake()
	}
	s.wakeAt = due
	s.wake = s.d.o.Alarms.At(due, func() {
		s.mu.Lock()
		s.wake = nil
		s.mu.Unlock()
		s.turn()
	})
}

// nextDue is when the next waiting job is due, or may begin.
func (s *scheduler) nextDue() (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.d.o.Now()
	due := s.hours.due(now.UnixMicro())
	if wait, limited := s.gate.NextDue(); limited {
		due = min(due, now.Add(max(wait, 0)).UnixMicro())
	}
	for len(s.waiting) > 0 {
		if _, gone := s.dropped[s.waiting[0].key()]; !gone {
			due = min(due, s.waiting[0].due)
			break
		}
		delete(s.dropped, s.waiting.pop(byDue).key())
	}
	if due == never {
		return time.Time{}, false
	}
	return time.UnixMicro(due).UTC(), true
}
