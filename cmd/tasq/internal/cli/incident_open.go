package cli

import (
	"context"
	"strings"

	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// openIncident returns the stored incident that a word is the id of, or the beginning of one. The id of a work item has precedence: for it, the result is an
// incident of a timer or a function, if the item has no others, and nil otherwise. It is nil for a whole id of neither, too.
func openIncident(ctx context.Context, r store.Finder, word string) (*store.Incident, error) {
	word = strings.ToLower(word)
	if why.NamesDefinition(word) {
		return nil, exit(ExitRefused, "incident %s is about a definition: it ends when a program with that is opened; tasq incidents says which", word)
	}
	items, err := beginning(ctx, r, itemIDs, word)
	switch {
	case err == nil && len(items) == 1:
		return incidentOfItem(ctx, r, items[0].id)
	case err != nil || len(items) > 0:
		return nil, err
	}
	found, err := beginning(ctx, r, incidentIDs, word)
	switch {
	case err != nil || len(found) == 0 && len(word) == idLength:
		return nil, err
	case len(found) == 0:
		return nil, noneBeginsWith(ctx, r, ofItemOrIncident, word)
	case len(found) > 1:
		return nil, ambiguous(word, "the ids of several incidents begin so; give more of one", found)
	}
	id, err := workitem.ParseID(found[0].id)
	if err != nil {
		return nil, err
	}
	i, err := store.OpenIncident(ctx, r, workitem.JobID(id))
	if err == nil && i == nil {
		err = exit(ExitNotFound, "incident %s (%s) has ended; tasq incidents lists those that are open", id, found[0].name)
	}
	return i, err
}

// incidentOfItem returns the incident of a timer or a function of a work item. It is nil if the item has none, or one about its own work.
func incidentOfItem(ctx context.Context, r store.Finder, item string) (found *store.Incident, err error) {
	id, err := workitem.ParseID(item)
	if err != nil {
		return nil, err
	}
	jobs, err := r.Jobs(ctx, store.JobFilter{Item: id, Kind: state.JobIncident, States: []state.JobState{state.JobWaiting}})
	if err != nil {
		return nil, err
	}
	var all []candidate
	for _, j := range jobs {
		i, err := store.OpenIncident(ctx, r, j.ID)
		if err != nil || i == nil || !i.Job.Again() {
			return nil, err
		}
		all, found = append(all, candidate{id: i.ID.String(), name: i.Job.Name}), i
	}
	if len(all) > 1 {
		return nil, ambiguous(item, "the work item has several incidents; name one of them", all)
	}
	return found, nil
}
