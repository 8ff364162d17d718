package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Frame is what one entry of the journal changes in a case.
type Frame struct {
	Seq     int64        `json:"seq"` // the position of the entry
	At      time.Time    `json:"at"`
	Command string       `json:"command"`
	By      string       `json:"by,omitempty"` // the actor; "" if it is the engine
	Changes []Difference `json:"changes"`      // from the frame before
}

var errFilmed = errors.New("the part is filmed")

// Film returns the states of a case over time: a frame for each entry that changes one of what [Differences] compares, oldest first, at most limit.
// It begins with the state of the tree, and leaves the tree in the state of the last frame; with an empty tree the first frame is the case as it was
// created. The error wraps [ErrNotFound] if there is no such case. next is the position after which the next part begins, 0 if there is none.
func Film(ctx context.Context, r Reader, id workitem.CaseID, tree *state.Tree, limit int) (frames []Frame, next int64, err error) {
	root, err := RootOfCase(ctx, r, id)
	if err != nil {
		return nil, 0, err
	}
	before := partsAt(tree, id)
	err = Replay(ctx, r, root, tree, Moment{}, func(e *Entry) error {
		after := partsAt(tree, id)
		changes := compare(before, after)
		before = after
		if len(changes) > 0 {
			frames = append(frames, Frame{Seq: e.Seq, At: e.At, Command: e.Command, By: e.By, Changes: changes})
		}
		if len(frames) == limit {
			next = e.Seq
			return errFilmed
		}
		return ctx.Err()
	})
	if errors.Is(err, errFilmed) {
		err = nil
	}
	if err == nil && tree.Case(id) == nil {
		err = fmt.Errorf("case %s: %w", id, ErrNotFound)
	}
	return frames, next, err
}

// partsAt lists the parts of a case; none if the case is not in the tree.
func partsAt(tree *state.Tree, id workitem.CaseID) []part {
	if c := tree.Case(id); c != nil {
		return partsOf(tree, c)
	}
	return nil
}
