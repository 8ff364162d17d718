package cli

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tasq-dev/tasq/retry"
)

// helpOfPolicy is the part of the help of each command that takes a retry policy.
const helpOfPolicy = "--attempts and the other flags of the retry policy change single fields of it, for the new work item and its retries, whose " +
	"attempts count anew."

// policyFlags declares the flags of the retry policy of a repair, one for each field.
func (q *asking) policyFlags(cmd *cobra.Command) {
	var given retry.Changes
	var backoff retry.Backoff
	var jitter retry.Jitter
	var attempts int
	var initial, maxWait, maxElapsed time.Duration
	var base, spread float64
	f := cmd.Flags()
	f.IntVar(&attempts, "attempts", 0, "retry policy: `n` attempts in all from now on, the first included")
	f.TextVar(&backoff, "backoff", retry.BackoffExponential, "retry policy: how the waits grow: exponential, constant, linear, fibonacci or table")
	f.DurationVar(&initial, "wait", 0, "retry policy: the first wait")
	f.Float64Var(&base, "base", 0, "retry policy: the factor between exponential waits")
	f.DurationSliceVar(&given.Waits, "waits", nil, "retry policy: the waits themselves, separated by commas")
	f.DurationVar(&maxWait, "max-wait", 0, "retry policy: the longest wait; 0 for no limit")
	f.DurationVar(&maxElapsed, "max-elapsed", 0, "retry policy: the time from the first attempt to the start of the last one; 0 for no limit")
	f.TextVar(&jitter, "jitter", retry.JitterNone, "retry policy: how the waits are randomized: none, full, equal or proportional")
	f.Float64Var(&spread, "spread", 0, "retry policy: the share by which proportional jitter changes a wait")
	for _, name := range []string{"backoff", "jitter"} {
		f.Lookup(name).DefValue = "" // those are of the zero policy, and without the flag the field stays
	}
	fields := map[string]func(){
		"attempts": func() { given.Attempts = &attempts }, "backoff": func() { given.Backoff = &backoff }, "wait": func() { given.Initial = &initial },
		"base": func() { given.Base = &base }, "waits": func() {}, "max-wait": func() { given.MaxWait = &maxWait },
		"max-elapsed": func() { given.MaxElapsed = &maxElapsed }, "jitter": func() { given.Jitter = &jitter }, "spread": func() { given.Spread = &spread },
	}
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cmd.Flags().Visit(func(flag *pflag.Flag) {
			if set := fields[flag.Name]; set != nil {
				set()
				q.command.Retry = &given
			}
		})
		return run(cmd, args)
	}
}
