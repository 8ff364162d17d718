package why_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// A definition that no open engine has is an incident after a minute, without a job, and ends when a program with it is opened.
func TestADefinitionThatNoEngineHasIsAnIncident(t *testing.T) {
	w := desk(t, "desk", builder.Work[any, any]{}, builder.Version("1"))
	other := desk(t, "desk", builder.Work[any, any]{Queue: "new"}, builder.Version("2"))
	held := desk(t, "held", builder.Work[any, any]{Policy: workitem.Incident(workitem.Policy{})})
	e := enginetest.New(t, w, held)
	listed := func(f store.IncidentFilter) (kinds []string, all []*store.Incident) {
		for i, err := range why.Incidents(t.Context(), e, f, e.Here(), e.Now()) {
			require.NoError(t, err)
			kinds, all = append(kinds, i.Kind), append(all, i)
		}
		return kinds, all
	}
	ids := []workitem.CaseID{start(t, e, w), start(t, e, w)}
	second := start(t, e, held)
	e.FailItem(second, "check.1.1", &workitem.Failure{Code: "busy"})
	e.Advance(time.Hour)
	kinds, _ := listed(store.IncidentFilter{})
	require.Equal(t, []string{"attempts"}, kinds)

	e.Crash(other, held)
	opened := e.Now()
	kinds, _ = listed(store.IncidentFilter{})
	require.Equal(t, []string{"attempts"}, kinds, "the program with the definition may be about to open")
	e.Advance(why.Grace)
	kinds, all := listed(store.IncidentFilter{})
	require.Equal(t, []string{"definition", "attempts"}, kinds)
	first := all[0]
	require.Equal(t, &store.MissingDefinition{Workflow: "desk", Version: "1", Fingerprint: w.Untyped().Fingerprint, Cases: 2}, first.Definition)
	require.Equal(t, opened, first.Since)
	require.Equal(t, "not-loaded: no open engine has workflow desk version 1, which 2 live cases need; open a program with it", first.Failure.Error())
	for _, i := range all {
		for _, desc := range []bool{false, true} { // a page of one, and the next
			kinds, _ = listed(store.IncidentFilter{Page: store.Page{Limit: 1, Desc: desc, After: i.ID.String()}})
			if (i == first) != desc {
				require.Len(t, kinds, 1)
				require.NotEqual(t, i.Kind, kinds[0])
			} else {
				require.Empty(t, kinds)
			}
		}
	}
	for name, c := range map[string]struct {
		f    store.IncidentFilter
		want []string
	}{
		"newest first":    {store.IncidentFilter{Page: store.Page{Desc: true}}, []string{"attempts", "definition"}},
		"limited":         {store.IncidentFilter{Page: store.Page{Limit: 1}}, []string{"definition"}},
		"kind":            {store.IncidentFilter{Kind: state.IncidentDefinition}, []string{"definition"}},
		"another kind":    {store.IncidentFilter{Kind: state.IncidentAttempts}, []string{"attempts"}},
		"workflow":        {store.IncidentFilter{Workflow: "desk"}, []string{"definition"}},
		"no task":         {store.IncidentFilter{Task: new("")}, []string{"definition"}},
		"a task":          {store.IncidentFilter{Task: new("check")}, []string{"attempts"}},
		"code":            {store.IncidentFilter{Code: new("not-loaded")}, []string{"definition"}},
		"a case":          {store.IncidentFilter{Root: ids[1]}, []string{"definition"}},
		"another case":    {store.IncidentFilter{Root: second}, []string{"attempts"}},
		"older, at first": {store.IncidentFilter{Before: opened}, []string{"attempts"}},
		"older":           {store.IncidentFilter{Before: opened.Add(time.Second)}, []string{"definition", "attempts"}},
	} {
		kinds, _ = listed(c.f)
		require.Equal(t, c.want, kinds, name)
	}
	for i, err := range store.Incidents(t.Context(), e, store.IncidentFilter{}) {
		require.NoError(t, err)
		require.Equal(t, "attempts", i.Kind, "no job stands for it")
	}

	e.Crash(w, held)
	kinds, _ = listed(store.IncidentFilter{})
	require.Equal(t, []string{"attempts"}, kinds)
	e.Advance(why.Grace)
	kinds, _ = listed(store.IncidentFilter{})
	require.Equal(t, []string{"attempts"}, kinds)
}
