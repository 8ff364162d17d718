package kernel

import (
	"context"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// Host is what the kernel needs of the engine.
type Host interface {
	Definitions
	RecordedSteps
	BusinessKeys
	Suspensions
	Tokens

	// Call runs a callback. A panic comes back as an error, and so does an overrun of time, as ErrAbandoned.
	Call(ctx context.Context, f func(ctx context.Context) error) error
	// Control is that of the transaction; the engine's code has control of it.
	Control() *Control
	// DB runs the user's SQL in the transaction of the command.
	DB() domain.DB

	// IDs makes the ids of what is new.
	IDs() IDs
}

// Tokens makes tokens, by which an event is sent to the case whose job has made it.
type Tokens interface {
	// NewToken makes a text that cannot be guessed, and that names the root case it is for, so that the case is found
	// without an index of all tokens.
	NewToken(root workitem.CaseID) (string, error)
}

// Definitions finds the definitions of the process.
type Definitions interface {
	// Definition finds the definition that a case runs on; nil if this program does not have it.
	Definition(fingerprint string) *workflow.Definition
	// Named finds the definition that new cases of a workflow run on; nil if this program does not have it.
	Named(workflow string) *workflow.Definition
}

// Suspensions finds suspended workflows.
type Suspensions interface {
	// Suspension returns with what new cases of a workflow are suspended; nil if they are not. The kernel does not change it.
	Suspension(workflow string) (*state.Suspension, error)
}

// RecordedSteps finds what runs of functions have recorded.
type RecordedSteps interface {
	// Steps lists the steps of a job by their owner; see [workitem.Step.Owner].
	Steps(owner [16]byte) ([]*workitem.Step, error)
	// CachedSteps lists the steps of one job of a tree, if they are in memory: what Steps lists of that job, in a slice
	// that is the caller's.
	CachedSteps(root workitem.CaseID, job workitem.JobID) ([]*workitem.Step, bool)
}

// BusinessKeys finds other root cases by their business keys.
type BusinessKeys interface {
	// KeyHolders lists the other root cases of the same workflow that hold the case's business key, oldest first.
	KeyHolders(c *state.Case) ([]workitem.CaseID, error)
	// KeyStarts lists the other root cases of the same workflow with the case's business key that were created after a
	// time, oldest first.
	KeyStarts(c *state.Case, after time.Time) ([]store.KeyStart, error)
	// IsLive reports whether a root case has not ended.
	IsLive(root workitem.CaseID) (bool, error)
}

// IDs makes ids that rise with time and with each call. A [workitem.Generator] is one.
type IDs interface {
	NewID(now time.Time) workitem.ID
	NewCaseID(now time.Time) workitem.CaseID
	NewJobID(now time.Time) workitem.JobID
	NewStepID(now time.Time) workitem.StepID
	NewMessageID(now time.Time) workitem.MessageID
}
