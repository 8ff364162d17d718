package airetry_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/recipes/airetry"
	"github.com/tasq-dev/tasq/recipes/airetry/chat"
	"github.com/tasq-dev/tasq/recipes/airetry/fakechat"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// The server is asked three times: it is overloaded, it hangs up, it answers. Then an editor approves.
func Example() {
	ctx := context.Background()
	faults := []fakechat.Fault{{Mode: fakechat.Failing}, {Mode: fakechat.Cut}}
	server, err := fakechat.Start(fakechat.Options{Faults: faults})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client := &chat.Client{BaseURL: server.URL(), Model: server.Model()}
	recipe, err := airetry.New(client, retry.Exponential(5, time.Millisecond)) // a second, outside of an example
	if err != nil {
		log.Fatal(err)
	}
	e, err := engine.Open(ctx, sqlite.Memory(), recipe)
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()

	id, err := recipe.Start(ctx, e, airetry.Prompt{Text: "Tell me about the rabbit."})
	if err != nil {
		log.Fatal(err)
	}
	review, err := opened(ctx, e, id, recipe.Review.Name())
	if err != nil {
		log.Fatal(err)
	}
	if err := recipe.Review.Start(ctx, e, review.ID); err != nil {
		log.Fatal(err)
	}
	if err := recipe.Review.Complete(ctx, e, review.ID, airetry.Verdict{Approved: true}); err != nil {
		log.Fatal(err)
	}
	for it, err := range store.AllItems(ctx, e, store.ItemFilter{Case: id}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%-12s  attempt %d  %s", it.Label(), it.Attempt, it.State)
		if it.Failure != nil {
			fmt.Printf(": %s", it.Failure.Code)
		}
		fmt.Println()
	}
	// Output:
	// generate.1.1  attempt 1  failed: internal_error
	// generate.1.2  attempt 2  failed: cut_short
	// generate.1.3  attempt 3  completed
	// review.1.1    attempt 1  completed
}

// opened waits until a task of a case has a work item.
func opened(ctx context.Context, e *engine.Engine, id workitem.CaseID, task string) (*workitem.Item, error) {
	for entry, err := range e.Watch(ctx, id, 0) {
		if err != nil {
			return nil, err
		}
		for _, event := range entry.Changes {
			if o, ok := event.(*state.ItemOpened); ok && o.Item.Task == task {
				return o.Item, nil
			}
		}
	}
	return nil, fmt.Errorf("case %s has no work item of task %s", id, task)
}
