package why

import (
	"context"
	"fmt"

	"github.com/tasq-dev/tasq/store"
)

// WithFleet returns here with what the store records of the engines that have it open, for a process without an engine. A store
// that one engine owns records nothing of that; nor does it of an engine without definitions, and then nothing is known.
func (h Here) WithFleet(ctx context.Context, r store.Reader) (Here, error) {
	fleet, ok := r.(store.Members)
	if !ok || h.Definition != nil || h.Known != nil {
		return h, nil
	}
	members, err := fleet.Members(ctx)
	if err != nil {
		return h, fmt.Errorf("engines: %w", err)
	}
	known := make(map[string]bool)
	for _, m := range members {
		if len(m.Fingerprints) == 0 {
			return h, nil
		}
		for _, print := range m.Fingerprints {
			known[print] = true
		}
	}
	if len(members) > 0 {
		h.Known, h.Opened = func(fingerprint string) bool { return known[fingerprint] }, members[0].Joined
	}
	return h, nil
}

// Unknown reports whether it is not known which definitions open engines have, so that missing ones cannot be computed.
func (h *Here) Unknown() bool { return h.Definition == nil && h.Known == nil }

// Lacks reports whether no open engine has the definition with a fingerprint, as far as that is known: commands that need it are rejected, and
// the jobs of its cases do not run.
func (h *Here) Lacks(fingerprint string) bool {
	missing, _ := h.lacks(fingerprint)
	return missing
}

// lacks reports whether no engine has a definition, as far as it is known; elsewhere, whether another engine has it and this
// one does not.
func (h *Here) lacks(fingerprint string) (missing, elsewhere bool) {
	switch {
	case h.Definition == nil:
		return h.Known != nil && !h.Known(fingerprint), false
	case h.Definition(fingerprint) != nil:
		return false, false
	case h.Others == nil || !h.Others(fingerprint):
		return true, false
	}
	return false, true
}
