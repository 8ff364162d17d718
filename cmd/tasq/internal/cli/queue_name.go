package cli

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/store"
)

// queuesOf lists the queues that the definitions of a database name, sorted. An item that is added may be in another one.
func queuesOf(defs []*store.Definition) (all []string) {
	type inQueue struct {
		Queue string `json:"queue"`
	}
	for _, d := range defs {
		var document struct{ Tasks, Jobs []inQueue }
		if json.Unmarshal(d.Document, &document) != nil {
			continue
		}
		for _, of := range slices.Concat(document.Tasks, document.Jobs) {
			if of.Queue != "" {
				all = append(all, of.Queue)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// noteQueue remarks on a queue that no definition names: it may be a wrong name, or one of a program that is still to come.
func (a *app) noteQueue(ctx context.Context, queue string) error {
	if queue == "" {
		return nil
	}
	return a.view(ctx, func(r store.Reader) error {
		known, err := namesOf(ctx, r)
		if err != nil {
			return err
		}
		if queues := queuesOf(known.defs); !slices.Contains(queues, queue) {
			a.remark("no workflow of the database names a queue %q; %s", queue, spelling.Hint(queue, queues))
		}
		return nil
	})
}
