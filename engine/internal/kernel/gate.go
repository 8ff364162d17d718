package kernel

import (
	"errors"
	"runtime"
	"sync/atomic"
)

// ErrAbandoned says that a callback took too long and was left behind: its transaction is gone.
var ErrAbandoned = errors.New("the transaction of this callback has ended")

// Gate keeps a callback that was left behind from touching what it no longer owns. One goroutine at a time works on a
// transaction, either in the engine's code or in the user's; the engine's always comes to an end, the user's may not.
// So the gate is open while the user's code has control, every call back into the engine closes it for its length, and
// the writer that gives up on a callback locks it for good while it is open.
//
//	        Out                    Lock
//	closed ─────▶ open (callback) ─────▶ locked
//	   ▲           │                       ▲
//	   └───────────┘ In                    │ End
//	   └───────────────────────────────────┘
//
// The two moves out of open exclude each other, by one compare-and-swap. Either the callback comes in before the lock,
// and the writer waits for that call to end, or it comes later and is refused.
//
// The zero value is closed: the engine's code has control.
type Gate struct{ state atomic.Int32 }

const (
	gateClosed = iota // the engine's code runs
	gateOpen          // the user's code runs
	gateLocked        // the transaction is over: no call comes in again
)

// Out gives control to the user's code.
func (g *Gate) Out() { g.state.Store(gateOpen) }

// In takes control back. The error is ErrAbandoned if the transaction is over.
func (g *Gate) In() error {
	if g.state.CompareAndSwap(gateOpen, gateClosed) {
		return nil
	}
	return ErrAbandoned
}

// End locks the gate when the engine's code has ended the transaction. A callback that has kept its scope beyond its
// return, in a goroutine or a variable, is refused from then on.
func (g *Gate) End() { g.state.Store(gateLocked) }

// Over reports whether the transaction is over.
func (g *Gate) Over() bool { return g.state.Load() == gateLocked }

// Lock ends the transaction for a callback that was left behind. It waits while that one is in the engine's code, which
// is never for long.
func (g *Gate) Lock() {
	for !g.state.CompareAndSwap(gateOpen, gateLocked) {
		if g.state.Load() == gateLocked {
			return
		}
		runtime.Gosched()
	}
}
