package notify_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/notify"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

var empty = net.MustCompile(&net.Definition{
	Name:       "empty",
	Conditions: []net.Condition{{Name: "start", Role: net.Start}, {Name: "end", Role: net.End}},
	Tasks:      []net.Task{{Name: "work"}},
	Flows:      []net.Flow{{From: "start", To: "work"}, {From: "work", To: "end"}},
})

// committer applies events to a tree, and has topics take them, as the writer does.
type committer struct {
	testing.TB
	topics *notify.Topics
	trees  map[workitem.CaseID]*state.Tree
}

func (c *committer) commit(root workitem.CaseID, changes ...state.Change) {
	if c.trees[root] == nil {
		c.trees[root] = state.NewTree()
		require.NoError(c, c.trees[root].Apply(&state.CaseOpened{Case: &state.Case{ID: root, Root: root, Net: empty}}))
	}
	for _, e := range changes {
		require.NoError(c, c.trees[root].Apply(e))
	}
	c.topics.Committed(c.trees[root], changes)
}

func waitingStep(id byte, root workitem.CaseID, topic string) *workitem.Step {
	return &workitem.Step{ID: workitem.StepID{id}, Case: root, Target: topic, Topic: true, State: workitem.StepWaiting}
}

func opened(s *workitem.Step) state.Change { return &state.StepOpened{Step: s} }

func ended(s *workitem.Step) state.Change {
	return &state.StepMoved{Case: s.Case, Job: s.Job, Step: s.ID, To: workitem.StepDone}
}

func TestTopicsOfCommits(t *testing.T) {
	c := &committer{t, notify.NewTopics(), make(map[workitem.CaseID]*state.Tree)}
	first, second := waitingStep(1, two, "news"), waitingStep(2, two, "news")
	c.commit(two, opened(first), opened(second), opened(waitingStep(3, two, "other")))
	c.commit(one, opened(waitingStep(4, one, "news")))
	require.Equal(t, []workitem.CaseID{one, two}, c.topics.Waiting("news"), "the oldest first")
	require.Equal(t, []workitem.CaseID{two}, c.topics.Waiting("other"))
	require.Empty(t, c.topics.Waiting("unknown"))

	event, done := waitingStep(5, one, "event"), waitingStep(6, one, "done")
	event.Topic, done.State = false, workitem.StepDone
	c.commit(one, opened(event), opened(done))
	require.Empty(t, c.topics.Waiting("event"), "an event that is sent to the case is no topic")
	require.Empty(t, c.topics.Waiting("done"), "a step that was recorded as done does not wait")

	c.commit(two, ended(first))
	require.Equal(t, []workitem.CaseID{one, two}, c.topics.Waiting("news"), "another step of the case waits")
	c.commit(two, ended(second))
	require.Equal(t, []workitem.CaseID{one}, c.topics.Waiting("news"))
	require.Equal(t, []workitem.CaseID{two}, c.topics.Waiting("other"))
}

// steps is a store with waiting steps.
type steps struct {
	all   []*workitem.Step
	pages int
	err   error
}

func (s *steps) Steps(_ context.Context, f store.StepFilter) ([]*workitem.Step, error) {
	if !f.Topic || len(f.States) != 1 || f.States[0] != workitem.StepWaiting {
		return nil, errGone
	}
	s.pages++
	var page []*workitem.Step
	for _, step := range s.all {
		if step.ID.String() > f.After && len(page) < store.DefaultLimit {
			page = append(page, step)
		}
	}
	return page, nil
}

// Root implements notify.Steps.
func (s *steps) Root(_ context.Context, id [16]byte) (workitem.CaseID, error) {
	return workitem.CaseID{id[0]}, s.err
}

func TestTopicsOfAStore(t *testing.T) {
	stored := &steps{}
	for i := range store.DefaultLimit + 1 {
		s := waitingStep(byte(i>>8), workitem.CaseID{1, 1}, "news")
		s.ID[1] = byte(i)
		stored.all = append(stored.all, s)
	}
	stored.all[store.DefaultLimit].Case = workitem.CaseID{2, 1}
	topics := notify.NewTopics()
	require.NoError(t, topics.Load(t.Context(), stored))
	require.Equal(t, []workitem.CaseID{one, two}, topics.Waiting("news"), "the root cases, also of the second page")
	require.Equal(t, 2, stored.pages)

	stored.err = errGone
	require.ErrorIs(t, notify.NewTopics().Load(t.Context(), stored), errGone)
}
