package kernel

import (
	"errors"
	"runtime"
	"sync/atomic"
)

// ErrAbandoned says that a callback exceeded its time and was abandoned: its transaction has ended.
var ErrAbandoned = errors.New("the transaction of this callback has ended")

// Control says whose code may work on a transaction, the engine's or the user's, so that an abandoned callback cannot
// touch a transaction that it no longer owns. The engine's code always returns, the user's may not. So control is given
// to a callback while it runs, each call back into the engine takes it for its duration, and the writer that abandons
// a callback revokes it for good.
//
//	        Give                    Revoke
//	engine ─────▶ user (a callback) ─────▶ ended
//	   ▲           │                         ▲
//	   └───────────┘ Take                    │ End
//	   └─────────────────────────────────────┘
//
// The two transitions from the user exclude each other, by one compare-and-swap. Either the callback calls the engine
// before it is abandoned, and the writer waits for that call to end, or it calls later and gets an error.
//
// The zero value is the engine's.
type Control struct{ holder atomic.Int32 }

const (
	engineHolds = iota
	userHolds
	nobodyHolds // the transaction has ended: no call comes in again
)

// Give passes control to the user's code.
func (c *Control) Give() { c.holder.Store(userHolds) }

// Take takes control back. The error is ErrAbandoned if the transaction has ended.
func (c *Control) Take() error {
	if c.holder.CompareAndSwap(userHolds, engineHolds) {
		return nil
	}
	return ErrAbandoned
}

// End is called when the engine has ended the transaction. A callback that has kept its scope after its return, in a
// goroutine or a variable, gets an error from then on.
func (c *Control) End() { c.holder.Store(nobodyHolds) }

// Ended reports whether the transaction has ended.
func (c *Control) Ended() bool { return c.holder.Load() == nobodyHolds }

// Revoke ends the transaction for an abandoned callback. If that is in the engine's code, Revoke waits until it has left
// it, which is soon.
func (c *Control) Revoke() {
	for !c.holder.CompareAndSwap(userHolds, nobodyHolds) {
		if c.Ended() {
			return
		}
		runtime.Gosched()
	}
}
