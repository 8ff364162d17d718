package engine

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/tasq-dev/tasq/store"
)

const (
	// inboxPace is how often the engine asks whether a command was left. Asking costs microseconds and reads no table.
	inboxPace = 250 * time.Millisecond
	// inboxRetry is how long the engine waits after the store failed to take or answer commands.
	inboxRetry = 10 * time.Second
	// inboxBatch bounds how many commands are read at a time.
	inboxBatch = 1000
)

// openInbox does the commands that were left while nobody owned the database, and then those that come. [Engine.Drain]
// waits for the former.
func (e *Engine) openInbox() {
	w, ok := e.store.(store.Watcher)
	if !ok {
		return
	}
	e.active.add(1)
	e.inbox.Go(func() {
		err := e.empty()
		e.active.add(-1)
		for e.rest(err) {
			var changed bool
			if changed, err = w.Changed(e.ctx); changed && err == nil {
				err = e.empty()
			}
		}
	})
}

// rest waits until it is time to look again; false if the engine closed meanwhile.
func (e *Engine) rest(err error) bool {
	pace := inboxPace
	if err != nil && !errors.Is(err, ErrClosed) && !errors.Is(err, context.Canceled) {
		pace = inboxRetry
		e.log.Error("commands of other processes could not be taken; they stay, and are tried again", "error", err, "in", pace)
	}
	timer := time.NewTimer(pace)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-e.closing:
		return false
	}
}

// empty does what is in the inbox.
func (e *Engine) empty() error {
	var requests []store.Request
	err := e.submit(e.ctx, &request{run: func(tx *Tx) (err error) {
		requests, err = tx.s.Requests(tx.ctx, inboxBatch)
		return err
	}})
	if err != nil || len(requests) == 0 {
		return err
	}
	var stored []*store.Definition
	err = e.store.View(e.ctx, func(r store.Reader) (err error) {
		stored, err = r.Definitions(e.ctx)
		return err
	})
	if err != nil {
		return err
	}
	served := make([]*request, 0, len(requests))
	for _, left := range requests {
		r := &request{run: func(tx *Tx) error { return tx.serve(left, stored) }}
		if err := e.ask(e.ctx, r); err != nil {
			return err
		}
		served = append(served, r)
	}
	var errs []error
	for _, r := range served {
		errs = append(errs, <-r.done)
	}
	return errors.Join(errs...)
}

// serve does one command, and records the answer in the same transaction: so it is done once, whatever fails. A command
// that is refused undoes itself alone. One that is for another program stays where it is.
func (tx *Tx) serve(left store.Request, stored []*store.Definition) error {
	c, err := DecodeRemote(left.Command)
	if err == nil && tx.foreign(c, stored) {
		tx.rollback()
		return nil
	}
	var result json.RawMessage
	if err == nil {
		err = tx.s.Savepoint(tx.ctx, func() error {
			done, err := tx.execute(c)
			if err == nil {
				result, err = json.Marshal(done)
			}
			return err
		})
	}
	if err != nil {
		tx.rollback()
		tx.e.log.Info("a command of another process was refused", "request", left.ID, "error", err)
		return tx.s.Reply(tx.ctx, left.ID, store.Answer{Code: Code(err), Error: err.Error()})
	}
	return tx.s.Reply(tx.ctx, left.ID, store.Answer{Result: result})
}
