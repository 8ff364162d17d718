package tables

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/store"
)

// KeptReply is how long a reply that was not fetched stays in the table of requests, in microseconds: one day.
const KeptReply = "86400000000"

// pollReply is the interval at which Post checks for its reply.
const pollReply = 20 * time.Millisecond

// Inbox is the table of the requests that other processes leave for the engine.
type Inbox interface {
	// Leave writes a command and returns its id.
	Leave(command json.RawMessage) (id int64, err error)

	// TakeReply deletes a request that has a reply, and returns the reply; done is false if there is none.
	TakeReply(id int64) (a store.Answer, done bool, err error)

	// TakeBack deletes a request that has no reply yet; done is false if there is none.
	TakeBack(id int64) (done bool, err error)
}

// Post leaves a command and waits for its reply. If the context ends first, the request is withdrawn, and the error
// says that the command did not run. The engine reads the request and replies in one transaction, so a command is never
// half executed.
func Post(ctx context.Context, in Inbox, command json.RawMessage) (store.Answer, error) {
	id, err := in.Leave(command)
	if err != nil {
		return store.Answer{}, err
	}
	ticker := time.NewTicker(pollReply)
	defer ticker.Stop()
	for {
		a, done, err := in.TakeReply(id)
		if done || err != nil {
			return a, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return takeBack(in, id, ctx.Err())
		}
	}
}

func takeBack(in Inbox, id int64, why error) (store.Answer, error) {
	done, err := in.TakeBack(id)
	if err != nil {
		return store.Answer{}, errors.Join(why, fmt.Errorf("the command may still happen: %w", err))
	}
	if done {
		return store.Answer{}, fmt.Errorf("no engine answered in time, and the command did not happen: %w", why)
	}
	a, _, err := in.TakeReply(id)
	return a, err
}

// ReadReply reads the columns result, code and error of a request.
func ReadReply(r *Row) (store.Answer, error) {
	a := store.Answer{Result: r.JSON(), Code: r.Text(), Error: r.Text()}
	return a, r.Err
}
