package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/demo"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/workitem"
)

// The exit codes. They are stable, since scripts depend on them. For those of tasq check see [check.Verdict.ExitCode].
const (
	ExitOK          = 0
	ExitNo          = 1   // the result is negative: a scenario's output differs, a database is damaged
	ExitUsage       = 2   // invalid arguments or input
	ExitNotFound    = 3   // no such case, work item, task or workflow
	ExitRefused     = 4   // the state of the case, or the process's own code, does not allow it
	ExitDatabase    = 5   // the database cannot be used
	ExitInterrupted = 130 // by Ctrl-C or a signal
)

// exitError is an error with an exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func exit(code int, format string, args ...any) error {
	return &exitError{code, fmt.Errorf(format, args...)}
}

func usagef(format string, args ...any) error { return exit(ExitUsage, format, args...) }

// usage returns an error of cobra as a usage error.
func usage(err error) error {
	if known := (*exitError)(nil); errors.As(err, &known) {
		return err
	}
	return &exitError{ExitUsage, errors.New(strings.TrimSpace(err.Error()))}
}

// exitCode returns the code for an error, which may come from the engine or the store.
func exitCode(err error) int {
	if known := (*exitError)(nil); errors.As(err, &known) {
		return known.code
	}
	switch {
	case errors.Is(err, demo.ErrUsage):
		return ExitUsage
	case errors.Is(err, demo.ErrForeign):
		return ExitRefused
	case errors.Is(err, demo.ErrFailed), errors.Is(err, demo.ErrCanceled), errors.Is(err, demo.ErrMissed):
		return ExitNo
	}
	switch engine.Code(err) {
	case "not-found", "unknown-workflow":
		return ExitNotFound
	case "invalid-payload", "too-large", "bad-command":
		return ExitUsage
	case "not-loaded", "illegal-transition", "not-active", "not-ended", "lease-lost", "not-failed", "restarted", "suspended", "dead-end", "bad-route", "runaway", "full", "key-reused", "key-taken", "throttled", "callback-failed", "refused",
		"definition-changed":
		return ExitRefused
	}
	if refusal := (*workitem.Failure)(nil); errors.As(err, &refusal) {
		return ExitRefused // by the process's own code
	}
	if remote := (*engine.RemoteError)(nil); errors.As(err, &remote) && !slices.Contains(ofDatabase, remote.Code) {
		return ExitRefused
	}
	return ExitDatabase
}

// ofDatabase lists the codes of an owner that cannot use its database.
var ofDatabase = []string{"commit-failed", "closed", "lost", "owned", "older", "read-only", "newer", "corrupt", "undone", "unavailable"}
