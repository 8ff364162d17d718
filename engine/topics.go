package engine

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// topics knows which root cases may hold a step that waits for a topic. It may name one too many: the kernel looks.
type topics struct {
	mu    sync.Mutex
	waits map[string]map[workitem.CaseID]bool
	of    map[workitem.CaseID]map[string]bool // the same the other way round
}

func (t *topics) init() {
	t.waits = make(map[string]map[workitem.CaseID]bool)
	t.of = make(map[workitem.CaseID]map[string]bool)
}

// roots lists the root cases for a topic, the oldest first.
func (t *topics) roots(topic string) []workitem.CaseID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(maps.Keys(t.waits[topic]), func(a, b workitem.CaseID) int {
		return bytes.Compare(a[:], b[:])
	})
}

func (t *topics) add(topic string, root workitem.CaseID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	addTo(t.waits, topic, root)
	addTo(t.of, root, topic)
}

// Committed implements observer.
func (t *topics) Committed(tree *store.Tree, events []store.Event) {
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
	if len(t.of[tree.Root]) == 0 {
		return
	}
	still := make(map[string]bool)
	tree.Each(func(c *store.Case) {
		for s := range c.Steps.All() {
			if s.Topic {
				still[s.Target] = true
			}
		}
	})
	for topic := range t.of[tree.Root] {
		if !still[topic] {
			takeFrom(t.waits, topic, tree.Root)
			takeFrom(t.of, tree.Root, topic)
		}
	}
}

func addTo[K, V comparable](sets map[K]map[V]bool, k K, v V) {
	if sets[k] == nil {
		sets[k] = make(map[V]bool)
	}
	sets[k][v] = true
}

// takeFrom takes a value out of a set, and the set away that is empty then.
func takeFrom[K, V comparable](sets map[K]map[V]bool, k K, v V) {
	if delete(sets[k], v); len(sets[k]) == 0 {
		delete(sets, k)
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
