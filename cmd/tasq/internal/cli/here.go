package cli

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// here returns which definitions the engines have that have the database open: as the database records it if they share it, and
// otherwise as its owner answers. Known is nil if there is no owner, or it does not answer, or is of a version that cannot.
func (a *app) here(ctx context.Context, r store.Reader) (why.Here, error) {
	here, err := why.Here{}.WithFleet(ctx, r)
	if err != nil || here.Known != nil {
		return here, err
	}
	db, err := a.database()
	if err != nil {
		return here, err
	}
	if owned, err := db.Owned(ctx); err != nil || !owned {
		return here, nil // what is not known is not shown
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	command, err := json.Marshal(workflow.Definitions())
	if err != nil {
		return here, err
	}
	answer, err := db.Inbox().Post(limited, command)
	if err != nil {
		return here, nil
	}
	if result, err := engine.RemoteAnswer(answer); err == nil && result.Loaded != nil {
		here.Opened = result.Loaded.Opened
		here.Known = func(fingerprint string) bool { return slices.Contains(result.Loaded.Fingerprints, fingerprint) }
	}
	return here, nil
}
