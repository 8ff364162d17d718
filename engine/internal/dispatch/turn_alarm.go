package dispatch

// setAlarm sets the time of the next turn.
func (s *scheduler) setAlarm(now int64) {
	due := min(s.hours.due(now), s.waiting.next(), s.gathered(now))
	if due == never || s.alarm.isSetTo(due) {
		return
	}
	s.alarm.stop()
	s.alarm = turnAlarm{at: due, cancel: s.d.o.Alarms.At(due, func() {
		s.mu.Lock()
		s.alarm = turnAlarm{}
		s.mu.Unlock()
		s.turn()
	})}
}

// turnAlarm is the time of the next turn. The zero value is none.
type turnAlarm struct {
	at     int64 // microseconds since 1970
	cancel func()
}

func (a turnAlarm) isSetTo(at int64) bool { return a.cancel != nil && a.at == at }

// stop stops the alarm, unless it has fired.
func (a turnAlarm) stop() {
	if a.cancel != nil {
		a.cancel()
	}
}
