package engine

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/store"
)

const (
	// inboxPace is how often the engine asks whether a command was left. Asking costs microseconds and reads no table.
	inboxPace = 250 * time.Millisecond
	// inboxRetry is how long the engine waits after the store failed to take or answer commands.
	inboxRetry = 10 * time.Second
	// inboxBatch bounds how many commands are read at a time.
	inboxBatch = 100
)

// inbox takes the commands that other processes leave in the store.
type inbox struct {
	e    *Engine
	w    store.Watcher
	owed bool // the last look failed, so what is there may be there still
	wait sync.WaitGroup
}

// start does the commands that were left while nobody owned the database, and then those that come. [Engine.Drain]
// waits for the former. A store that nobody can leave commands in has no inbox.
func (i *inbox) start(e *Engine) {
	w, ok := e.store.(store.Watcher)
	if !ok {
		return
	}
	i.e, i.w, i.owed = e, w, true
	e.active.add(1)
	i.wait.Go(func() {
		err := i.look()
		e.active.add(-1)
		for i.rest(err) {
			err = i.look()
		}
	})
}

// rest waits until it is time to look again; false if the engine closed meanwhile.
func (i *inbox) rest(err error) bool {
	pace := inboxPace
	if err != nil && !errors.Is(err, ErrClosed) && !errors.Is(err, context.Canceled) {
		pace = inboxRetry
		i.e.log.Error("commands of other processes could not be taken; they stay, and are tried again",
			"error", err, "in", pace)
	}
	timer := time.NewTimer(pace)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-i.e.closing:
		return false
	}
}

// look does what is in the inbox, if anything was put there since it was last emptied.
func (i *inbox) look() error {
	changed, err := i.w.Changed(i.e.ctx)
	if err != nil || !changed && !i.owed {
		return err
	}
	i.owed = true
	if err := i.e.serveAll(); err != nil {
		return err
	}
	i.owed = false
	return nil
}

// serveAll does every command that was left, page by page. Those for another program stay, so each page goes on behind
// the one before.
func (e *Engine) serveAll() error {
	for after := int64(0); ; {
		var requests []store.Request
		err := e.submit(e.ctx, &request{run: func(tx *Tx) (err error) {
			requests, err = tx.s.Requests(tx.ctx, after, inboxBatch)
			return err
		}})
		if err == nil && len(requests) > 0 {
			err = e.servePage(requests)
		}
		if err != nil || len(requests) < inboxBatch {
			return err
		}
		after = requests[len(requests)-1].ID
	}
}

// servePage has the writer do some commands, each in its own transaction, and waits for all of them.
func (e *Engine) servePage(requests []store.Request) error {
	var stored []*store.Definition
	err := e.store.View(e.ctx, func(r store.Reader) (err error) {
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
	if errors.Is(err, errLate) {
		return err // the whole of it is done again
	}
	if err != nil {
		tx.rollback()
		tx.e.log.Info("a command of another process was refused", "request", left.ID, "error", err)
		return tx.s.Reply(tx.ctx, left.ID, store.Answer{Code: Code(err), Error: err.Error()})
	}
	return tx.s.Reply(tx.ctx, left.ID, store.Answer{Result: result})
}
