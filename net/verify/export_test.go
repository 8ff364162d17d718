package verify

// SettleAfter makes verification try to settle a net so many states after the first violation, and returns what makes
// that as it was.
func SettleAfter(states int) (restore func()) {
	before := soonStates
	soonStates = states
	return func() { soonStates = before }
}
