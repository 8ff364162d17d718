package sqlite

// mutex is a lock that one goroutine has at a time, those that wait in their order. Unlike a [sync.Mutex] it is a channel, since it is
// held for as long as an Update lasts, which may wait for time to pass: in a bubble of package testing/synctest, time passes only
// while all goroutines wait for what the bubble knows, and that is a channel and not a sync.Mutex. Make one with [newMutex].
type mutex chan struct{}

func newMutex() mutex { return make(mutex, 1) }

// Lock waits for the lock.
func (m mutex) Lock() { m <- struct{}{} }

// TryLock takes the lock if it is free, and reports whether it did.
func (m mutex) TryLock() bool {
	select {
	case m <- struct{}{}:
		return true
	default:
		return false
	}
}

// Unlock gives the lock back.
func (m mutex) Unlock() { <-m }
