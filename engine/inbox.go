package engine

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

const (
	// inboxPace is how often the engine asks whether a command was left. Asking costs microseconds and reads no table.
	inboxPace = 250 * time.Millisecond
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
		for faults := 0; i.rest(err, faults); faults++ {
			if err == nil {
				faults = 0
			}
			err = i.look()
		}
	})
}

// rest waits until it is time to look again; false if the engine closed meanwhile.
func (i *inbox) rest(err error, faults int) bool {
	if err = i.e.lose(err); errors.Is(err, ErrClosed) || errors.Is(err, context.Canceled) {
		err = nil
	}
	i.e.faults.note("inbox", err, "commands of other processes could not be taken; they stay, and are tried again")
	pace := inboxPace
	if err != nil {
		pace = max(pace, faultWait(faults))
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
		requests, err := submitFor(e.ctx, e, &request{}, func(tx *Tx) ([]store.Request, error) {
			return tx.s.Requests(tx.ctx, after, inboxBatch)
		})
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
	for i, r := range served {
		err := <-r.done
		if errors.Is(err, store.ErrUndone) && !isFault(err) {
			err = e.refuseRemote(requests[i], err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// refuseRemote answers a command whose own transaction is gone, and its answer with it.
func (e *Engine) refuseRemote(left store.Request, cause error) error {
	return e.submit(e.ctx, &request{run: func(tx *Tx) error { return tx.refuse(left, cause) }})
}

func (tx *Tx) refuse(left store.Request, cause error) error {
	tx.e.log.Info("a command of another process was refused", "request", left.ID, "error", cause)
	return tx.s.Reply(tx.ctx, left.ID, store.Answer{Code: Code(cause), Error: cause.Error()})
}

// serve does one command, and records the answer in the same transaction: so it is done once, whatever fails. A command
// that is refused undoes itself alone. One that only another program can do is refused too, or stays if it is to.
func (tx *Tx) serve(left store.Request, stored []*store.Definition) error {
	c, err := workflow.Decode(left.Command)
	if err == nil {
		if err = tx.foreign(&c, stored); err != nil && c.WaitForOwner {
			tx.rollback()
			return nil
		}
	}
	var result json.RawMessage
	if err == nil {
		err = tx.s.Savepoint(tx.ctx, func() error {
			done, err := tx.execute(&c)
			if err == nil {
				result, err = json.Marshal(done)
			}
			return err
		})
	}
	if errors.Is(err, errLate) || isFault(err) || errors.Is(err, store.ErrUndone) {
		return err // the whole of it is done again, or there is nothing left that an answer could be part of
	}
	if err != nil {
		tx.rollback()
		return tx.refuse(left, err)
	}
	return tx.s.Reply(tx.ctx, left.ID, store.Answer{Result: result})
}
