package notify

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Topics is an index of the root cases that may have a step which waits for a topic. It may list a case that no longer
// waits, but never misses one that does. It is safe for concurrent use. Make one with [NewTopics].
type Topics struct {
	mu     sync.Mutex
	roots  map[string]map[workitem.CaseID]struct{} // by topic
	topics map[workitem.CaseID]map[string]struct{} // by root case
}

// Steps is what [Topics.Load] reads; a store.Reader has these methods.
type Steps interface {
	// Steps lists the steps that match, a page at a time.
	Steps(ctx context.Context, f store.StepFilter) ([]*workitem.Step, error)
	// Root finds the root case of a case.
	Root(ctx context.Context, id [16]byte) (workitem.CaseID, error)
}

// NewTopics returns an index of no cases.
func NewTopics() *Topics {
	return &Topics{
		roots:  make(map[string]map[workitem.CaseID]struct{}),
		topics: make(map[workitem.CaseID]map[string]struct{}),
	}
}

// Load adds the waiting steps of a store.
func (t *Topics) Load(ctx context.Context, r Steps) error {
	filter := store.StepFilter{Topic: true, States: []workitem.StepState{workitem.StepWaiting}}
	for {
		steps, err := r.Steps(ctx, filter)
		if err != nil {
			return err
		}
		for _, s := range steps {
			root, err := r.Root(ctx, s.Case)
			if err != nil {
				return err
			}
			t.add(s.Target, root)
			filter.After = s.ID.String()
		}
		if len(steps) < store.DefaultLimit {
			return nil
		}
	}
}

// Waiting returns the root cases that may wait for a topic, oldest first.
func (t *Topics) Waiting(topic string) []workitem.CaseID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(maps.Keys(t.roots[topic]), func(a, b workitem.CaseID) int {
		return bytes.Compare(a[:], b[:])
	})
}

// Committed adds new waiting steps, and removes the topics for which no step of the tree waits any longer. Pruning
// visits the whole tree, so it is done once per commit, and only if a step has changed state.
func (t *Topics) Committed(tree *state.Tree, changes []state.Change) {
	moved := false
	for _, e := range changes {
		switch e := e.(type) {
		case *state.StepOpened:
			if e.Step.Topic && e.Step.State == workitem.StepWaiting {
				t.add(e.Step.Target, tree.Root)
			}
		case *state.StepMoved:
			moved = true
		}
	}
	if moved {
		t.prune(tree)
	}
}

func (t *Topics) add(topic string, root workitem.CaseID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	add(t.roots, topic, root)
	add(t.topics, root, topic)
}

// prune removes the topics that no step of the tree waits for.
func (t *Topics) prune(tree *state.Tree) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.topics[tree.Root]) == 0 {
		return
	}
	awaited := make(map[string]bool)
	tree.Each(func(c *state.Case) {
		for s := range c.Steps.All() {
			awaited[s.Target] = awaited[s.Target] || s.Topic
		}
	})
	for topic := range t.topics[tree.Root] {
		if !awaited[topic] {
			remove(t.roots, topic, tree.Root)
			remove(t.topics, tree.Root, topic)
		}
	}
}
