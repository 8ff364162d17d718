package registry

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/net/verify"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workflow"
)

// An undecidable check must not delay the opening of an engine for long. Each workflow was verified by itself when it was
// built.
const (
	holdTime   = 500 * time.Millisecond
	holdStates = 100_000
)

// CheckHolds checks whether cases of different workflows can deadlock over limits that they hold. The error wraps
// [workflow.ErrHoldDeadlock]. Workflows that allow the finding are skipped.
func (r *Registry) CheckHolds(clock retry.Clock) error {
	var with []*workflow.Definition
	for _, d := range slices.SortedFunc(maps.Values(r.byFingerprint), byNameAndVersion) {
		if d.HasHolds() && !slices.Contains(d.Verification.Allowed, verify.HoldDeadlock) {
			with = append(with, d)
		}
	}
	if len(with) < 2 {
		return nil
	}
	rep, err := workflow.VerifyHolds(with, verify.Options{States: holdStates, Time: holdTime, Now: clock.Now})
	if err != nil || rep.Deadlock == nil { // what cannot be verified is a warning of Build
		return nil
	}
	f := rep.Deadlock.Finding()
	var places []string
	for _, at := range f.Places() {
		places = append(places, at.String())
	}
	return fmt.Errorf("%w: %s (%s)\n\t%s,\n\tor allow it with builder.AllowUnsound(%q) of one of the workflows", workflow.ErrHoldDeadlock, f.Text,
		strings.Join(places, ", "), f.Fix, f.Code)
}
