package kernel

import (
	"errors"
	"runtime"
	"sync/atomic"
)

// ErrAbandoned says that a callback exceeded its time and was abandoned: its transaction has ended.
var ErrAbandoned = errors.New("the transaction of this callback has ended")

// Gate keeps an abandoned callback from touching a transaction that it no longer owns. One goroutine at a time works on
// a transaction, in the engine's code or in the user's; the engine's code always returns, the user's may not. So the
// gate is open while the user's code runs, each call back into the engine closes it for its duration, and the writer
// that abandons a callback locks it for good while it is open.
//
//	        Out                    Lock
//	closed ─────▶ open (callback) ─────▶ locked
//	   ▲           │                       ▲
//	   └───────────┘ In                    │ End
//	   └───────────────────────────────────┘
//
// The two transitions out of open exclude each other, by one compare-and-swap. Either the callback enters before the
// lock, and the writer waits for that call to end, or it comes later and gets an error.
//
// The zero value is closed: the engine's code has control.
type Gate struct{ state atomic.Int32 }

const (
	gateClosed = iota // the engine's code runs
	gateOpen          // the user's code runs
	gateLocked        // the transaction is over: no call comes in again
)

// Out passes control to the user's code.
func (g *Gate) Out() { g.state.Store(gateOpen) }

// In takes control back. The error is ErrAbandoned if the transaction is over.
func (g *Gate) In() error {
	if g.state.CompareAndSwap(gateOpen, gateClosed) {
		return nil
	}
	return ErrAbandoned
}

// End locks the gate when the engine has ended the transaction. A callback that has kept its scope after its return, in
// a goroutine or a variable, gets an error from then on.
func (g *Gate) End() { g.state.Store(gateLocked) }

// Over reports whether the transaction is over.
func (g *Gate) Over() bool { return g.state.Load() == gateLocked }

// Lock ends the transaction for an abandoned callback. If that is in the engine's code, Lock waits until it has left
// it, which is soon.
func (g *Gate) Lock() {
	for !g.state.CompareAndSwap(gateOpen, gateLocked) {
		if g.state.Load() == gateLocked {
			return
		}
		runtime.Gosched()
	}
}
