package cli

import (
	"encoding/json"
	"slices"

	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// rebuild compiles the definitions that the database has as text, the newest of each name last.
func rebuild(stored []*store.Definition) ([]*workflow.Definition, error) {
	var texts []*scenario.Workflow
	var from []*store.Definition
	for _, s := range stored {
		var document struct {
			Notation string `json:"notation"`
		}
		if s.Code || json.Unmarshal(s.Document, &document) != nil || document.Notation == "" {
			continue
		}
		parsed, err := scenario.ParseNotation(posOf("database"), document.Notation)
		if err != nil || len(parsed) != 1 {
			continue // written by a version with another notation, whose program must run it
		}
		texts, from = append(texts, parsed[0]), append(from, s)
	}
	return compileAll(texts, from)
}

// compileAll compiles the newest definition of each name together, and then the older ones, whose composite tasks run
// the newest.
func compileAll(texts []*scenario.Workflow, from []*store.Definition) ([]*workflow.Definition, error) {
	newest := make(map[string]int)
	for i, s := range from {
		if old, ok := newest[s.Name]; !ok || from[old].Created.Compare(s.Created) <= 0 {
			newest[s.Name] = i
		}
	}
	var order []int
	for _, i := range newest {
		order = append(order, i)
	}
	slices.Sort(order)
	order = complete(texts, order)
	var latest []*scenario.Workflow
	for _, i := range order {
		latest = append(latest, texts[i])
	}
	known := make(map[string]*workflow.Definition)
	defs, problems, err := scenario.Compile(latest, nil)
	if err != nil || len(problems) > 0 {
		return nil, err
	}
	for k, d := range defs {
		d.Version = from[order[k]].Version
		known[d.Name] = d
	}
	var older []*workflow.Definition
	for i, s := range from {
		if newest[s.Name] == i {
			continue
		}
		old, problems, err := scenario.Compile([]*scenario.Workflow{texts[i]}, known)
		if err == nil && len(problems) == 0 {
			old[0].Version = s.Version
			older = append(older, old[0])
		}
	}
	// If a text no longer gives the same definition, it was written by a version that reads it differently.
	changed := func(d *workflow.Definition) bool {
		return !slices.ContainsFunc(from, func(s *store.Definition) bool { return s.Fingerprint == d.Fingerprint })
	}
	return slices.DeleteFunc(append(older, defs...), changed), nil
}

// complete removes the workflows with a composite task whose workflow is not a text: that one is code, and only its own
// program can run both. This may make further ones incomplete, which are removed too.
func complete(texts []*scenario.Workflow, order []int) []int {
	for {
		names := make(map[string]bool)
		for _, i := range order {
			names[texts[i].Def.Name] = true
		}
		lacks := func(t net.Task) bool {
			return slices.ContainsFunc(t.Of, func(name string) bool { return !names[name] })
		}
		rest := slices.DeleteFunc(slices.Clone(order), func(i int) bool {
			return slices.ContainsFunc(texts[i].Def.Tasks, lacks)
		})
		if len(rest) == len(order) {
			return rest
		}
		order = rest
	}
}
