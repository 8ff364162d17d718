// Package eventlog writes the history of cases as an event log for process mining, in the format OCEL 2.0 (objects, and
// events that refer to several of them) or XES (IEEE 1849: a trace for each case).
//
// An event is a step in the life of a work item, of a task without work items, or of a step of a durable function, or a
// message that was sent to a case. It has the name of the activity, the transition of the standard XES life cycle, its
// time, and the actor. Inputs and outputs are omitted; a business key and labels are attributes of a case.
//
// A log is written while the journal is read; memory is limited to a page of rows, and the active items of one root
// case.
package eventlog

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

// Format is a format of event logs.
type Format string

// The formats.
const (
	OCEL Format = "ocel" // OCEL 2.0 as JSON
	XES  Format = "xes"  // IEEE 1849 XES as XML
)

// Formats lists the formats.
func Formats() []Format { return []Format{OCEL, XES} }

// ParseFormat parses the name of a format. The error lists the formats.
func ParseFormat(word string) (Format, error) {
	if f := Format(word); slices.Contains(Formats(), f) {
		return f, nil
	}
	return "", fmt.Errorf("%q is not a format of event logs; use one of ocel, xes", word)
}

// Options selects the content of a log. The zero value selects all cases.
type Options struct {
	// Cases selects root cases; each is written with the history of all its descendants. RootOnly has no effect.
	Cases store.CaseFilter
	// Shown returns what the log shows of a case: it uses the business key and the labels. nil shows all.
	Shown func(*state.Case) *state.Case
}

// Write writes the event log of the selected cases, in the order of the start of their root cases. It reads a few root
// cases at a time in one view, and writes them after it. A case that changes meanwhile is written in its state at the
// time of that view. Part of an OCEL log is kept in a temporary file until all cases have been read. After an error the
// log is incomplete; nothing is written if the first page cannot be read.
func Write(ctx context.Context, w io.Writer, v store.Viewer, f Format, o Options) error {
	t, err := newTarget(w, f)
	if err != nil {
		return err
	}
	err = write(ctx, t, v, o)
	if ended := t.end(err == nil); err == nil {
		err = ended
	}
	if err != nil {
		return fmt.Errorf("event log: %w", err)
	}
	return nil
}

// target writes a format.
type target interface {
	begin(root *state.Case)
	hasObjects() bool // the format has objects besides events, by item and ofCase
	item(it *store.ItemRow)
	ofCase(c *state.Case)
	event(e *event)
	finish() error        // the end of a root case
	end(whole bool) error // the end of the log; whole is false after an error
}

func newTarget(w io.Writer, f Format) (target, error) {
	switch f {
	case XES:
		return newXES(w), nil
	case OCEL:
		return newOCEL(w)
	}
	_, err := ParseFormat(string(f))
	return nil, err
}

func write(ctx context.Context, t target, v store.Viewer, o Options) error {
	shown := o.Shown
	if shown == nil {
		shown = func(c *state.Case) *state.Case { return c }
	}
	b := newBatches(v, o.Cases, t.hasObjects())
	for {
		roots, err := b.next(ctx)
		if err != nil || len(roots) == 0 {
			return err
		}
		for _, root := range roots {
			if err := writeRoot(ctx, t, v, root, shown); err != nil {
				return err
			}
		}
	}
}

// writeRoot writes a root case with its descendants. The events end where the journal ended when the root case was
// read, and the objects are read at that time or later, so all objects of the events are in the log.
func writeRoot(ctx context.Context, t target, v store.Viewer, root *history, shown func(*state.Case) *state.Case) error {
	t.begin(shown(root.root))
	if t.hasObjects() {
		for it, err := range root.eachItem(ctx, v) {
			if err != nil {
				return err
			}
			t.item(it)
		}
		for c, err := range root.eachCase(ctx, v) {
			if err != nil {
				return err
			}
			t.ofCase(shown(c))
		}
	}
	l := newLife()
	for e, err := range root.eachEntry(ctx, v) {
		if err != nil {
			return err
		}
		l.entry(e, t.event)
	}
	return t.finish()
}
