package dispatch

// setAlarm sets the time of the next dispatch.
func (s *scheduler) setAlarm(now int64) {
	due := min(s.hours.due(now), s.waiting.next(), s.queues.lineDue(now))
	if due == never || s.alarm.isSetTo(due) {
		return
	}
	s.alarm.stop()
	s.alarm = dispatchAlarm{at: due, cancel: s.d.o.Alarms.At(due, func() {
		s.mu.Lock()
		s.alarm = dispatchAlarm{}
		s.mu.Unlock()
		s.dispatch()
	})}
}

// dispatchAlarm is the time of the next dispatch. The zero value is none.
type dispatchAlarm struct {
	at     int64 // microseconds since 1970
	cancel func()
}

func (a dispatchAlarm) isSetTo(at int64) bool { return a.cancel != nil && a.at == at }

// stop stops the alarm, unless it has fired.
func (a dispatchAlarm) stop() {
	if a.cancel != nil {
		a.cancel()
	}
}
