package workflow

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workitem"
)

// Use is what each attempt of a function acquires of a limit before it starts, and releases when it ends, fails or is
// suspended. All uses of a limit with one name share it. Limits are not part of the fingerprint, so that their numbers can
// change while cases run.
type Use struct {
	Limit  limit.Limit
	N      int64                                       // how much; 0 is Limit.Each
	Amount func(input json.RawMessage) (int64, error)  // how much, by the input; nil: N
	Key    func(input json.RawMessage) (string, error) // whose limit it is, by the input; nil: all share one
	Any    []string                                    // instead of Key: whose, of which any will do; nil: it is Key's
	Steps  bool                                        // the attempt takes nothing of it: steps of the function do
}

// Check returns an error if the limit is invalid, or can never admit the amount.
func (u *Use) Check() error {
	if err := u.Limit.Validate(); err != nil {
		return err
	}
	if u.Steps {
		return nil
	}
	if u.Any != nil {
		if err := limit.CheckKeys(u.Limit.Name, u.Any); err != nil {
			return err
		}
	}
	n := u.N
	if n == 0 {
		n = u.Limit.Each
	}
	switch {
	case u.Amount != nil && u.N != 0:
		return fmt.Errorf("how much of %s is given twice, as a number and as a function: give one of them", u.Limit)
	case u.Amount != nil:
		return nil
	case n <= 0:
		return fmt.Errorf("how much of %s is %d: give more than 0, or set its Each", u.Limit, n)
	}
	return u.admits(n)
}

// admits refuses an amount that the limit never admits. One that is paused may be given more later.
func (u *Use) admits(n int64) error {
	if n > u.Limit.Capacity() && u.Limit.N > 0 {
		return fmt.Errorf("%d of %s are more than it admits at once: take at most %d, or raise it: %w",
			n, u.Limit, u.Limit.Capacity(), limit.ErrTooMuch)
	}
	return nil
}

// Of returns the amount and the key of an attempt with the given input. The error is permanent, since another attempt would fail
// in the same way. The functions of the use are called in a separate goroutine, since user code that calls runtime.Goexit would
// end the goroutine of the caller.
func (u *Use) Of(input json.RawMessage) (n int64, key string, err error) {
	if u.Steps {
		return 0, "", nil
	}
	if n = u.N; n == 0 {
		n = u.Limit.Each
	}
	if u.Amount == nil && u.Key == nil {
		return n, "", nil
	}
	err = u.fault("ended its goroutine, as runtime.Goexit does: let it return")
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				panicked := retry.NewPanicError(p)
				err = &usePanic{u.fault(panicked.Brief()).Error(), panicked}
			}
		}()
		n, key, err = u.ask(n, input)
	}()
	<-done
	return n, key, err
}

// ask calls the functions of a use; n is how much is taken if there is none for that.
func (u *Use) ask(n int64, input json.RawMessage) (_ int64, key string, err error) {
	if u.Amount != nil {
		if n, err = u.Amount(input); err == nil && n < 0 {
			err = fmt.Errorf("how much of %s a job takes is %d: give 0 or more: %w", u.Limit, n, limit.ErrAmount)
		}
	}
	if err == nil && u.Key != nil {
		key, err = u.Key(input)
	}
	return n, key, err
}

func (u *Use) fault(what string) error {
	return fmt.Errorf("the function that says how much of %s a job takes, or for which key, %s", u.Limit, what)
}

// usePanic is the error of a function of a use that panicked. It has the code and the details of a panic.
type usePanic struct {
	text string
	*retry.PanicError
}

// Error returns what panicked, and where.
func (e *usePanic) Error() string { return e.text }

// Unwrap returns the PanicError, which wraps the value if that is an error.
func (e *usePanic) Unwrap() error { return e.PanicError }

// LimitInfo is a limit with its usage.
type LimitInfo struct {
	Limit   limit.Limit   `json:"limit"`
	Defined int64         `json:"defined"`        // its N as the workflows define it
	Loaded  bool          `json:"loaded"`         // the engine that lists it uses it; the store alone remembers others
	Keys    int           `json:"keys,omitempty"` // how many keys of it are remembered; 0 or 1 without keys
	Used    int64         `json:"used"`           // over all keys: slots that are held, what was admitted and still counts
	Waiting int           `json:"waiting"`        // jobs, and code outside of jobs, that wait for it
	Next    time.Duration `json:"next,omitempty"` // how long until there is more of it; limit.Unknown, which JSON leaves out, if time alone gives none
	Set     []KeyLimit    `json:"set,omitempty"`  // the keys that have a number of their own, sorted

	// At, By and Reason say when, by whom and why the number was set; zero if it was not, or is not known. engine/why.ReadLimits reads them.
	At     time.Time `json:"at,omitzero"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`

	// Held is how many slots cases hold over several tasks, over all keys. Holders lists the first [MaxHolders] of the holds, and MoreHolders counts
	// the others. An engine leaves them out; engine/why.ReadLimits reads them.
	Held        int64         `json:"held,omitempty"`
	Holders     []LimitHolder `json:"holders,omitempty"`
	MoreHolders int           `json:"moreHolders,omitempty"`

	// HeldOutside is how many slots code outside of jobs holds, and WaitingOutside how much of Waiting is such code, in the engine that lists the
	// limit; see engine.Limits.
	HeldOutside    int64 `json:"heldOutside,omitempty"`
	WaitingOutside int   `json:"waitingOutside,omitempty"`

	// Engines is how many engines have the database open if they are several: Used (of a limit that is not shared), Waiting and Next are those of the
	// one that lists it. An engine leaves it out; engine/why.ReadLimits reads it.
	Engines int `json:"engines,omitempty"`
}

// MaxHolders is how many holders of a limit are listed.
const MaxHolders = 100

// LimitHolder is a case that holds slots of a limit over several tasks.
type LimitHolder struct {
	Case workitem.CaseID `json:"case"`
	Key  string          `json:"key,omitempty"` // whose slots; "" is the one that all share
	N    int64           `json:"n"`
	Task string          `json:"task"` // the task that acquired them
}

// limitInfo is a LimitInfo without its methods.
type limitInfo LimitInfo

// MarshalJSON leaves next out if it is limit.Unknown: programs that read JSON would take the number for 292 years, or for another one, as
// it has more digits than theirs. A next of 0 is written.
func (l LimitInfo) MarshalJSON() ([]byte, error) {
	written := struct {
		limitInfo
		Next *time.Duration `json:"next,omitempty"`
	}{limitInfo: limitInfo(l)}
	if l.Next != limit.Unknown {
		written.Next = &l.Next
	}
	return json.Marshal(written)
}

// UnmarshalJSON reads what MarshalJSON has written.
func (l *LimitInfo) UnmarshalJSON(data []byte) error {
	read := limitInfo{Next: limit.Unknown}
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	*l = LimitInfo(read)
	return nil
}

// KeyLimit is the number of one key of a limit, see [SetLimitOf].
type KeyLimit struct {
	Key string    `json:"key"`
	N   int64     `json:"n"` // 0 is paused
	At  time.Time `json:"at,omitzero"`
	By  string    `json:"by,omitempty"` // who set it; "" is unknown

	Reason string `json:"reason,omitempty"` // why
}

// LimitWait is what a job waits for, or a step of it, of one limit.
type LimitWait struct {
	Job   workitem.JobID `json:"job"`
	Step  string         `json:"step,omitempty"` // the name of the step that waits; "" if it is the job
	Limit string         `json:"limit"`
	Key   string         `json:"key,omitempty"`  // whose it is; "" is the one that all share
	Any   []string       `json:"any,omitempty"`  // the keys of which any will do
	N     int64          `json:"n"`              // how much is needed
	Free  time.Time      `json:"free,omitzero"`  // when it has room, as far as time alone gives it
	Ahead int            `json:"ahead,omitzero"` // how many go first
	Text  string         `json:"text"`           // "3 of rate openai, free in 4s"

	HeldBy []workitem.CaseID `json:"heldBy,omitempty"` // the cases that hold the slots over several tasks

	HeldOutside  int64 `json:"heldOutside,omitempty"`  // the slots that code outside of jobs holds, see engine.Limits
	AheadOutside int   `json:"aheadOutside,omitempty"` // how many of Ahead are such code

	// QueueKey is the key of the job in its queue, see [PauseKey], if the job waits because that key is paused. The other fields, except Job, are
	// zero then.
	QueueKey string `json:"queueKey,omitempty"`
}

// Kind says for people how the limit counts: "slots", "breaker", or a period and an algorithm, as in "in 1m, sliding window".
func (l LimitInfo) Kind() string {
	switch l.Limit.Algorithm {
	case limit.Slots:
		return "slots"
	case limit.CircuitBreaker:
		return "breaker"
	}
	return fmt.Sprintf("in %s, %s", printable.Duration(l.Limit.Per), strings.ReplaceAll(l.Limit.Algorithm.String(), "-", " "))
}

// NextFree says for people when there is more of the limit: "now", "in 1.4s", "on release" if time alone gives none, "paused", or
// "no function here" if none of the engine that lists it takes of it.
func (l LimitInfo) NextFree() string {
	switch {
	case !l.Loaded:
		return "no function here"
	case l.Limit.N == 0:
		return "paused"
	case l.Next == limit.Unknown:
		return "on release"
	case l.Next <= 0:
		return "now"
	}
	return "in " + printable.Took(l.Next)
}
