package engine

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// topics knows which root cases may hold a step that waits for a topic. It may name one too many: the kernel looks.
type topics struct {
	mu    sync.Mutex
	waits map[string]map[workitem.CaseID]int
}

func (t *topics) init() { t.waits = make(map[string]map[workitem.CaseID]int) }

// roots lists the root cases for a topic, the oldest first.
func (t *topics) roots(topic string) []workitem.CaseID {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []workitem.CaseID
	for root := range t.waits[topic] {
		all = append(all, root)
	}
	slices.SortFunc(all, func(a, b workitem.CaseID) int { return bytes.Compare(a[:], b[:]) })
	return all
}

func (t *topics) add(topic string, root workitem.CaseID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waits[topic] == nil {
		t.waits[topic] = make(map[workitem.CaseID]int)
	}
	t.waits[topic][root]++
}

// note takes up what a committed command did.
func (t *topics) note(tree *store.Tree, events []store.Event) {
	moved := false
	for _, e := range events {
		switch e := e.(type) {
		case *store.StepOpened:
			if e.Step.Topic && e.Step.State == workitem.StepWaiting {
				t.add(e.Step.Target, tree.Root)
			}
		case *store.StepMoved:
			moved = true
		}
	}
	if moved {
		t.forget(tree)
	}
}

// forget drops the topics that nothing of the tree waits for any more.
func (t *topics) forget(tree *store.Tree) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for topic, roots := range t.waits {
		if roots[tree.Root] == 0 {
			continue
		}
		waits := false
		tree.Each(func(c *store.Case) {
			for s := range c.Steps.All() {
				waits = waits || s.Topic && s.Target == topic
			}
		})
		if waits {
			continue
		}
		if delete(roots, tree.Root); len(roots) == 0 {
			delete(t.waits, topic)
		}
	}
}

// load finds what waited when the engine before this one ended.
func (t *topics) load(ctx context.Context, s store.Store) error {
	filter := store.StepFilter{Topic: true, States: []workitem.StepState{workitem.StepWaiting}}
	return s.View(ctx, func(r store.Reader) error {
		for {
			steps, err := r.Steps(ctx, filter)
			if err != nil {
				return err
			}
			for _, step := range steps {
				root, err := r.Root(ctx, step.Case)
				if err != nil {
					return err
				}
				t.add(step.Target, root)
				filter.After = step.ID.String()
			}
			if len(steps) < store.DefaultLimit {
				return nil
			}
		}
	})
}
