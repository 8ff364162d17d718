package cli

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tasq-dev/tasq/internal/spelling"
	"github.com/tasq-dev/tasq/store"
)

// queuesOf lists the queues in the definitions of a database, sorted. An item that is added at run time may be in
// another one.
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

// noteQueue prints a message for a queue that no definition has: the name may be wrong, or that of a later program.
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
