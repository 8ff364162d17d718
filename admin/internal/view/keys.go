package view

import (
	"fmt"
	"slices"

	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// This file has the commands for single keys: those of a queue that are paused, and those of a limit that have numbers of their own. A key that
// is not shown as it is has no command, as a form would show it, or name another one.

// maxKeyButtons is how many keys of a limit have a button, if it is not known which one a job needs.
const maxKeyButtons = 3

// controls returns what is set of limits and queues.
func controls(r *Request) (map[string]store.LimitValue, map[string]store.QueueValue, error) {
	all, err := r.R.Settings(r)
	if err != nil {
		return nil, nil, err
	}
	return store.ReadControls(all)
}

// keysShown returns the keys of a queue that are paused and shown as they are.
func keysShown(r *Request, queue string, set store.QueueValue) (keys []string) {
	all := set.PausedKeys()
	for i, k := range r.Mask.PausedKeys(queue, all) {
		if k.Key == all[i].Key {
			keys = append(keys, k.Key)
		}
	}
	return keys
}

// numbersShown returns the keys of a limit that have numbers of their own and are shown as they are.
func numbersShown(r *Request, name string, set store.LimitValue) (keys []workflow.KeyLimit) {
	all := why.LimitsSet(map[string]store.LimitValue{name: set})
	for i, k := range r.Mask.Limits(all)[0].Set {
		if k.Key == all[0].Set[i].Key {
			keys = append(keys, k)
		}
	}
	return keys
}

// ofPaused returns the commands that resume the queue of a wait, or the keys of it that are, or may be, the one of its job.
func (b *buttons) ofPaused(w *why.Wait) (all []Link) {
	keys := w.MayBePausedKeys
	if w.PausedKey != "" {
		keys = []string{w.PausedKey}
	}
	if len(keys) == 0 {
		return b.button(all, "Resume the queue…", "resume-queue", w.Queue)
	}
	_, queues, err := controls(b.r)
	if err != nil || !b.r.User.Allowed(string(workflow.KindUnpause), w.Queue) {
		return nil
	}
	shown := keysShown(b.r, w.Queue, queues[w.Queue])
	for _, key := range keys {
		if slices.Contains(shown, key) {
			all = append(all, Link{Text: "Resume key " + printable.Line(key) + "…", Href: b.Link("/act", "kind", "resume-queue", "queue", w.Queue, "queueKey", key)})
		}
	}
	return all
}

// ofLimits returns the commands that set the limits for which a wait needs room: those of its key, if that has a number of its own. Of needs by a
// key that is not known here, they are those of the keys that are set to 0.
func (b *buttons) ofLimits(w *why.Wait) (all []Link) {
	limits, _, err := controls(b.r)
	if err != nil {
		return nil
	}
	for i := range w.Limits {
		l, before := &w.Limits[i], len(all)
		for _, k := range numbersShown(b.r, l.Limit, limits[l.Limit]) {
			if k.Key == l.Key || k.N == 0 && slices.Contains(l.Any, k.Key) {
				all = b.ofKey(all, l.Limit, k)
			}
		}
		if len(all) == before {
			all = b.button(all, "Set limit "+printable.Line(l.Limit)+"…", "set-limit", l.Limit)
		}
	}
	for i := range w.Needs {
		name, n := w.Needs[i].Limit, 0
		for _, k := range numbersShown(b.r, name, limits[name]) {
			if k.N == 0 && n < maxKeyButtons {
				n, all = n+1, b.ofKey(all, name, k)
			}
		}
	}
	return all
}

// ofKey returns the command that sets a limit for one key.
func (b *buttons) ofKey(all []Link, name string, k workflow.KeyLimit) []Link {
	if !b.r.User.Allowed(string(workflow.KindSetLimit), name) {
		return all
	}
	return append(all, Link{Text: fmt.Sprintf("Set limit %s for key %s, now %d…", printable.Line(name), printable.Line(k.Key), k.N),
		Href: b.Link("/act", "kind", "set-limit", "limit", name, "limitKey", k.Key)})
}
