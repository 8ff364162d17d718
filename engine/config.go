package engine

import (
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/workflow"
)

// Config tunes an engine. The zero value is what [Open] uses.
type Config struct {
	// Queues sets how many jobs of a queue run at a time. A queue that is not listed runs Workers at a time; 0 and less
	// stop the queue: this engine leaves its jobs alone. Default: none listed.
	Queues map[string]int
	// Workers is the number for queues that are not listed. Default: 32; negative: none, so that no job runs here.
	Workers int
	// MaxRunning bounds how many jobs run at a time in this engine, over all its queues; of those that wait, the most urgent begins next,
	// whatever its queue. A batch counts as one. Default: no bound but those of the queues.
	MaxRunning int

	// MaxPending bounds how many jobs of a queue wait to begin, due or not, in this engine. [Engine.Do] refuses to start a case that
	// would add one to a full queue, with an error that is [ErrFull]; what goes on by itself and what Update does is not refused.
	// Default: no bound.
	MaxPending map[string]int
	// WaitWhenFull has Do wait until the queue has room, or its context ends, instead of refusing.
	WaitWhenFull bool
	// Aging is how long a job waits in its queue until it is as urgent as a fresh one of the next higher priority, so that low
	// priorities are served in the end. Default: none, and a higher priority always goes first.
	Aging time.Duration

	// Steps is how many functions of [step.Do] run at a time in this engine, over all its jobs and their branches. One that
	// has to wait for its turn does not begin, and its Timeout does not run. Default: 128; negative: no bound.
	Steps int

	// Lease is how long a claim on a job is good without a heartbeat. The engine sends one every third of it. Default: 30 s.
	Lease time.Duration
	// CallbackTimeout is how long one callback in a transaction may take before its command is undone. Default: 10 s.
	CallbackTimeout time.Duration
	// Grace is how long Close waits for running jobs before it cancels their contexts. Default: 10 s.
	Grace time.Duration
	// CacheCases is how many root cases are kept in memory between commands. Default: 10,000.
	CacheCases int
	// MaxPayload is the size limit of an input, output or event, in bytes. Default: 1 MiB, which is domain.MaxSize and so
	// the most; Open refuses more.
	MaxPayload int

	// Wrap surrounds commands, jobs and steps, the first outermost. Default: nothing.
	Wrap []Middleware

	// Clock is the source of time. Default: the system's.
	Clock retry.Clock
	// Logger takes what an operator should know. Its handler must not use the engine; a record at which it panics is lost.
	// Default: slog.Default().
	Logger *slog.Logger
	// Random is the source of the random part of ids and tokens. Open, and commands, fail while it does, with the code "random-failed";
	// what the engine does by itself is tried again, and reads go on. Its calls do not overlap. Default: crypto/rand.
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

// check finds what an engine cannot work with.
func (cfg Config) check() error {
	if cfg.MaxPayload > domain.MaxSize {
		return fmt.Errorf("Config.MaxPayload is %d bytes, and no payload has more than %d (domain.MaxSize): give that or less, "+
			"and keep what is larger elsewhere", cfg.MaxPayload, domain.MaxSize)
	}
	for queue, most := range cfg.MaxPending {
		if most < 0 {
			return fmt.Errorf("Config.MaxPending of queue %q is %d: give 0 or more, or leave the queue out for no bound", queue, most)
		}
	}
	return workflow.CheckName("owner of Config.Owner", cfg.Owner)
}

// withDefaults fills in what the zero value leaves open. The owner names the process for people, in claims and in `tasq processes`; it is
// no fence, so that two engines of one process may share it.
func (cfg Config) withDefaults() Config {
	if cfg.Steps == 0 {
		cfg.Steps = DefaultSteps
	}
	if cfg.Workers == 0 {
		cfg.Workers = DefaultWorkers
	}
	if cfg.Lease <= 0 {
		cfg.Lease = DefaultLease
	}
	if cfg.CallbackTimeout <= 0 {
		cfg.CallbackTimeout = DefaultCallbackTimeout
	}
	if cfg.Grace <= 0 {
		cfg.Grace = DefaultGrace
	}
	if cfg.CacheCases <= 0 {
		cfg.CacheCases = DefaultCacheCases
	}
	if cfg.MaxPayload <= 0 {
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
