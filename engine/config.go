package engine

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workflow"
)

// Config configures an engine. The zero value has the defaults, and is what Open uses. Open rejects a negative number or time, except where its
// field says what it means, with an error that wraps [ErrConfig].
type Config struct {
	// Queues sets how many jobs of a queue run concurrently. A queue that is not listed has Workers; with 0 or less, this engine runs no
	// jobs of the queue. Default: none listed.
	Queues map[string]int
	// Workers is the number for queues that are not listed. Default: 32. If negative, this engine runs no jobs of these queues.
	Workers int
	// MaxRunning limits how many jobs run concurrently in this engine, over all its queues; the most urgent waiting job of any queue
	// starts next. A batch counts as one job. Default: no limit but those of the queues.
	MaxRunning int

	// MaxPending limits how many jobs of a queue, due or not, wait, over all engines of the database. What waits in others, or in none, is
	// counted at each heartbeat and before a start is rejected, so several engines can exceed the limit by what the others start within
	// about a second. [Engine.Do] rejects the start of a case that
	// would add a job to a full queue, with an error that wraps [ErrFull]. Running cases and [Engine.Update] can exceed the limit.
	// Default: no limit.
	MaxPending map[string]int
	// WaitWhenFull makes Do wait until the queue has room, or its context ends, instead of returning ErrFull.
	WaitWhenFull bool
	// Aging prevents starvation of low priorities: a job that has waited this long is as urgent as a new one of the next higher
	// priority. Default: none; a higher priority always goes first.
	Aging time.Duration

	// Steps limits how many functions of [step.Do] run concurrently in this engine, over all its jobs and their branches.
	// The Timeout of a step starts when its function does. Default: 128; negative: no limit.
	Steps int

	// Lease is how long a claim on a job is valid without a heartbeat, at least 100 ms. The engine sends a heartbeat every third of this
	// time. Default: 30 s.
	Lease time.Duration
	// CallbackTimeout is how long a callback in a transaction may take before its command is rolled back. A statement of its SQL that
	// still runs then is interrupted. Default: 10 s.
	CallbackTimeout time.Duration
	// Grace is how long Close waits for running jobs before it cancels their contexts. Default: 10 s.
	Grace time.Duration
	// CacheCases is how many root cases are kept in memory between commands. Default: 10,000.
	CacheCases int
	// MaxPayload is the size limit of an input, output or event, in bytes. Default: 1 MiB, which is domain.MaxSize; Open
	// rejects a larger limit.
	MaxPayload int

	// Limits are limits for code outside of jobs, see [Limits]; those that functions of the engine take of need not be listed. A limit has the
	// same definition here and in functions. Default: none.
	Limits []limit.Limit

	// Wrap is the middleware for commands, jobs and steps, the first one outermost. Default: none.
	Wrap []Middleware

	// Clock is the source of time. Default: the system's.
	Clock retry.Clock
	// Logger receives messages for operators. Its handler must not use the engine; a record for which it panics is lost. Default:
	// slog.Default().
	Logger *slog.Logger
	// Random is the source of the random part of ids and tokens. While it fails, Open and commands fail with the code "random-failed";
	// the engine retries its own work, and reads are not affected. It is not called concurrently. Default: crypto/rand.
	Random io.Reader
	// Owner names this engine in the claims that it makes. Default: host name and process id.
	Owner string
}

// The defaults of Config.
const (
	DefaultWorkers         = 32
	DefaultSteps           = 128
	DefaultLease           = 30 * time.Second
	DefaultCallbackTimeout = 10 * time.Second
	DefaultGrace           = 10 * time.Second
	DefaultCacheCases      = 10_000
	DefaultMaxPayload      = 1 << 20
)

// ErrConfig is wrapped by every error of Open about a [Config].
var ErrConfig = errors.New("invalid configuration")

// minLease is the shortest time of a claim: a heartbeat is a commit, and takes some milliseconds.
const minLease = 100 * time.Millisecond

// check returns an error for values that an engine cannot use. The fields have their defaults.
func (cfg Config) check() error {
	if err := cfg.checkNumbers(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	for field, queues := range map[string]map[string]int{"Queues": cfg.Queues, "MaxPending": cfg.MaxPending} {
		for queue := range queues {
			if err := workflow.CheckName("name of a queue of Config."+field, queue); err != nil {
				return fmt.Errorf("%w: %w", ErrConfig, err)
			}
		}
	}
	for _, l := range cfg.Limits {
		if err := l.Validate(); err != nil {
			return fmt.Errorf("%w: Config.Limits: %w", ErrConfig, err)
		}
	}
	if err := workflow.CheckName("owner of Config.Owner", cfg.Owner); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

// checkNumbers returns an error for a number or time that means nothing.
func (cfg Config) checkNumbers() error {
	for _, d := range []struct {
		field        string
		value, least time.Duration
		instead      string
	}{
		{"Lease", cfg.Lease, minLease, fmt.Sprintf("%v or more, or 0 for %v", minLease, DefaultLease)},
		{"CallbackTimeout", cfg.CallbackTimeout, 0, fmt.Sprintf("more than 0, or 0 for %v", DefaultCallbackTimeout)},
		{"Grace", cfg.Grace, 0, fmt.Sprintf("more than 0, or 0 for %v", DefaultGrace)},
		{"Aging", cfg.Aging, 0, "more than 0, or 0 for no aging"},
	} {
		if d.value < d.least {
			return fmt.Errorf("engine.Config.%s is %v: give %s", d.field, d.value, d.instead)
		}
	}
	for _, n := range []struct {
		field   string
		value   int
		instead string
	}{
		{"MaxRunning", cfg.MaxRunning, "1 or more, or 0 for no limit"},
		{"CacheCases", cfg.CacheCases, fmt.Sprintf("1 or more, or 0 for %d", DefaultCacheCases)},
		{"MaxPayload", cfg.MaxPayload, fmt.Sprintf("1 or more bytes, or 0 for %d", DefaultMaxPayload)},
	} {
		if n.value < 0 {
			return fmt.Errorf("engine.Config.%s is %d: give %s", n.field, n.value, n.instead)
		}
	}
	if cfg.MaxPayload > domain.MaxSize {
		return fmt.Errorf("engine.Config.MaxPayload is %d bytes, and no payload has more than %d (domain.MaxSize): give that or less, "+
			"and keep what is larger elsewhere", cfg.MaxPayload, domain.MaxSize)
	}
	for queue, most := range cfg.MaxPending {
		if most < 0 {
			return fmt.Errorf("Config.MaxPending of queue %q is %d: give 0 or more, or leave the queue out for no bound", queue, most)
		}
	}
	return nil
}

// withDefaults sets the default of each field that is zero. The owner names the process for people, in claims and in
// `tasq processes`. It is not a fence, so two engines of one process may have the same one.
func (cfg Config) withDefaults() Config {
	if cfg.Steps == 0 {
		cfg.Steps = DefaultSteps
	}
	if cfg.Workers == 0 {
		cfg.Workers = DefaultWorkers
	}
	if cfg.Lease == 0 {
		cfg.Lease = DefaultLease
	}
	if cfg.CallbackTimeout == 0 {
		cfg.CallbackTimeout = DefaultCallbackTimeout
	}
	if cfg.Grace == 0 {
		cfg.Grace = DefaultGrace
	}
	if cfg.CacheCases == 0 {
		cfg.CacheCases = DefaultCacheCases
	}
	if cfg.MaxPayload == 0 {
		cfg.MaxPayload = DefaultMaxPayload
	}
	if cfg.Clock == nil {
		cfg.Clock = retry.SystemClock
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	cfg.Logger = guarded(cfg.Logger)
	if cfg.Random == nil {
		cfg.Random = rand.Reader
	}
	if cfg.Owner == "" {
		host, _ := os.Hostname()
		cfg.Owner = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	return cfg
}
