package sqlite

// mutex is a lock that one goroutine has at a time, in the order of their calls. Unlike a [sync.Mutex] it is a channel,
// since it is held during an Update, which may wait for time to pass: in a bubble of package testing/synctest, time
// advances only while all goroutines are durably blocked, and a goroutine that waits for a sync.Mutex is not. Create
// one with [newMutex].
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

// Unlock releases the lock.
func (m mutex) Unlock() { <-m }
