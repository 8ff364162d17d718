package postgres

import (
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

func nullable(s string) pgtype.Text { return pgtype.Text{String: s, Valid: s != ""} }

// A case without labels has NULL, and not an empty object.
func addLabels(b []byte, c *state.Case) []byte {
	if len(c.Labels) == 0 {
		return b
	}
	return state.AppendLabels(b, c.Labels)
}

// someTokens is the expected size of the encoded tokens or tasks of a case, in bytes.
const someTokens = 40

// failures encodes failures; nil is NULL.
// The text has no JSON type in the database: a failure may have a \u0000 in it, which the type jsonb refuses. See
// codeOf.
func failures[T any](list []T, of func(T) *workitem.Failure) textArray {
	return optionalEncoded(list, 0, func(b []byte, v T) []byte {
		if f := of(v); f != nil {
			return state.AppendFailure(b, f)
		}
		return b
	})
}

// row is a value with the columns that are not part of it.
// Each function below returns the columns of a list of rows, one array for each column, in the order of the table:
//
//	rows                           columns
//	case 1, started, no failure    id       {1, 2}
//	case 2, failed, {"code":"x"}   state    {started, failed}
//	                               failure  {NULL, {"code":"x"}}
//
// The i-th value of each array belongs to the i-th row. PostgreSQL checks only the types of the arrays: two columns
// of one type that are exchanged are not an error of the server.
type row[T comparable] struct {
	v, was   T // was is the value in the database; nil if it has no row
	root     workitem.CaseID
	workflow string // of its case
	holder   int64  // of a job: the engine that holds it
}

type caseRow = row[*state.Case]

// The settled and the changing columns of cases are in the order of [tables.Cases]. The same holds for items and jobs.
// They never change after the row was inserted, so an UPDATE leaves them out. An input may be large, and a case
// changes with each of its commands.
func caseSettled(l []caseRow) []any {
	return []any{
		ids(l, func(r caseRow) workitem.CaseID { return r.v.ID }),
		ids(l, func(r caseRow) workitem.CaseID { return r.v.Root }),
		ids(l, func(r caseRow) workitem.CaseID { return r.v.Parent }),
		texts(l, func(r caseRow) string { return r.v.ParentTask }),
		integers(l, func(r caseRow) int { return r.v.Generation }),
		integers(l, func(r caseRow) int { return r.v.Number }),
		texts(l, func(r caseRow) string { return r.v.Workflow }),
		texts(l, func(r caseRow) string { return r.v.Version }),
		texts(l, func(r caseRow) string { return r.v.Fingerprint }),
		times(l, func(r caseRow) time.Time { return r.v.Created }),
		optionalTexts(l, func(r caseRow) json.RawMessage { return r.v.Input }),
		ids(l, func(r caseRow) workitem.JobID { return r.v.Caller }),
		optionalTexts(l, func(r caseRow) json.RawMessage { return r.v.Options }),
		integers(l, func(r caseRow) int { return r.v.Priority }),
		ids(l, func(r caseRow) workitem.CaseID { return r.v.Predecessor }),
		optionalTexts(l, func(r caseRow) string { return r.v.Key }),
		optionalEncoded(l, 0, func(b []byte, r caseRow) []byte { return addLabels(b, r.v) }),
	}
}

// An UPDATE writes all of them, also those that this command has not changed: there is one statement for each kind of
// row, whatever was changed.
func caseChanges(l []caseRow) []any {
	return []any{
		flags(l, func(r caseRow) bool { return r.v.Unique }),
		texts(l, func(r caseRow) string { return r.v.State.String() }),
		flags(l, func(r caseRow) bool { return r.v.Begun }),
		encoded(l, someTokens*len(l), func(b []byte, r caseRow) []byte { return state.AppendMarking(b, r.v.Net, r.v.Marking) }),
		encoded(l, someTokens*len(l), func(b []byte, r caseRow) []byte { return state.AppendTasks(b, r.v.Net, r.v.Tasks) }),
		optionalTexts(l, func(r caseRow) json.RawMessage { return r.v.Output }),
		failures(l, func(r caseRow) *workitem.Failure { return r.v.Failure }),
		optionalTimes(l, func(r caseRow) time.Time { return r.v.Ended }),
		optionalTimes(l, func(r caseRow) time.Time { return r.v.KeepUntil }),
		numbers(l, func(r caseRow) int64 { return r.v.LastSeq }),
		optionalEncoded(l, 0, addSuspension),
	}
}

// Nothing is appended for a case that is not suspended, which makes the column NULL.
func addSuspension(b []byte, r caseRow) []byte {
	if r.v.Suspended == nil {
		return b
	}
	return state.AppendSuspension(b, r.v.Suspended)
}

type itemRow = row[*workitem.Item]

// Each retry of an item is an item of its own, so its attempt and its due time do not change.
func itemSettled(l []itemRow) []any {
	return []any{
		ids(l, func(r itemRow) workitem.ID { return r.v.ID }),
		ids(l, func(r itemRow) workitem.CaseID { return r.v.Case }),
		texts(l, func(r itemRow) string { return r.v.Task }),
		integers(l, func(r itemRow) int { return r.v.Generation }),
		integers(l, func(r itemRow) int { return r.v.Number }),
		integers(l, func(r itemRow) int { return r.v.Attempt }),
		ids(l, func(r itemRow) workitem.ID { return r.v.Predecessor }),
		times(l, func(r itemRow) time.Time { return r.v.Created }),
		optionalTimes(l, func(r itemRow) time.Time { return r.v.Due }),
		optionalTexts(l, func(r itemRow) json.RawMessage { return r.v.Input }),
		texts(l, func(r itemRow) string { return r.v.Queue }),
		integers(l, func(r itemRow) int { return r.v.Priority }),
	}
}

func itemChanges(l []itemRow) []any {
	return []any{
		texts(l, func(r itemRow) string { return r.v.State.String() }),
		ids(l, func(r itemRow) workitem.ID { return r.v.Successor }),
		optionalTexts(l, func(r itemRow) json.RawMessage { return r.v.Output }),
		failures(l, func(r itemRow) *workitem.Failure { return r.v.Failure }),
		texts(l, func(r itemRow) string { return r.v.By }),
		optionalTimes(l, func(r itemRow) time.Time { return r.v.Started }),
		optionalTimes(l, func(r itemRow) time.Time { return r.v.Ended }),
		optionalTexts(l, func(r itemRow) json.RawMessage { return r.v.Retry }),
	}
}

type jobRow = row[*state.Job]

// A job is retried as the same row: its attempt and due time are among the changes.
func jobSettled(l []jobRow) []any {
	return []any{
		ids(l, func(r jobRow) workitem.JobID { return r.v.ID }),
		ids(l, func(r jobRow) workitem.CaseID { return r.v.Case }),
		ids(l, func(r jobRow) workitem.CaseID { return r.v.Root }),
		texts(l, func(r jobRow) string { return r.v.Task }),
		integers(l, func(r jobRow) int { return r.v.Generation }),
		ids(l, func(r jobRow) workitem.ID { return r.v.Item }),
		texts(l, func(r jobRow) string { return r.v.Kind }),
		texts(l, func(r jobRow) string { return r.v.Name }),
		texts(l, func(r jobRow) string { return r.v.Queue }),
		integers(l, func(r jobRow) int { return r.v.Priority }),
		optionalTexts(l, func(r jobRow) json.RawMessage { return r.v.Input }),
		flags(l, func(r jobRow) bool { return r.v.Detached }),
		times(l, func(r jobRow) time.Time { return r.v.Created }),
	}
}

func jobChanges(l []jobRow) []any {
	return []any{
		texts(l, func(r jobRow) string { return r.v.State.String() }),
		times(l, func(r jobRow) time.Time { return r.v.Due }),
		integers(l, func(r jobRow) int { return r.v.Attempt }),
		integers(l, func(r jobRow) int { return r.v.Crashes }),
		numbers(l, func(r jobRow) int64 { return r.v.Fence }),
		texts(l, func(r jobRow) string { return r.v.Owner }),
		optionalTimes(l, func(r jobRow) time.Time { return r.v.Lease }),
		failures(l, func(r jobRow) *workitem.Failure { return r.v.Failure }),
		optionalTimes(l, func(r jobRow) time.Time { return r.v.Ended }),
	}
}

type stepRow = row[*workitem.Step]

// stepColumns are in the order of [tables.Steps], followed by the root.
// A step does not name its root case, with which the key of each table begins: see row.root. There is one list and
// not two, since most steps are written once.
func stepColumns(l []stepRow) []any {
	return []any{
		ids(l, func(r stepRow) workitem.StepID { return r.v.ID }),
		ids(l, func(r stepRow) [16]byte { return r.v.Owner() }),
		ids(l, func(r stepRow) workitem.JobID { return r.v.Job }),
		ids(l, func(r stepRow) workitem.ID { return r.v.Item }),
		ids(l, func(r stepRow) workitem.CaseID { return r.v.Case }),
		texts(l, func(r stepRow) string { return r.v.Name }),
		texts(l, func(r stepRow) string { return string(r.v.Kind) }),
		texts(l, func(r stepRow) string { return r.v.Target }),
		flags(l, func(r stepRow) bool { return r.v.Topic }),
		optionalTexts(l, func(r stepRow) json.RawMessage { return r.v.Input }),
		integers(l, func(r stepRow) int { return r.v.Run }),
		ids(l, func(r stepRow) workitem.CaseID { return r.v.Child }),
		flags(l, func(r stepRow) bool { return r.v.Copied }),
		times(l, func(r stepRow) time.Time { return r.v.Created }),
		texts(l, func(r stepRow) string { return r.v.State.String() }),
		integers(l, func(r stepRow) int { return r.v.Attempt }),
		optionalTimes(l, func(r stepRow) time.Time { return r.v.Due }),
		optionalTexts(l, func(r stepRow) json.RawMessage { return r.v.Result }),
		failures(l, func(r stepRow) *workitem.Failure { return r.v.Failure }),
		optionalTimes(l, func(r stepRow) time.Time { return r.v.Ended }),
		ids(l, func(r stepRow) workitem.CaseID { return r.root }),
	}
}

type messageRow = row[*state.Message]

// messageColumns are in the order of [tables.Messages], followed by the root.
// A message changes once, when a step takes it.
func messageColumns(l []messageRow) []any {
	return []any{
		ids(l, func(r messageRow) workitem.MessageID { return r.v.ID }),
		ids(l, func(r messageRow) workitem.CaseID { return r.v.Case }),
		texts(l, func(r messageRow) string { return r.v.Name }),
		flags(l, func(r messageRow) bool { return r.v.Topic }),
		optionalTexts(l, func(r messageRow) json.RawMessage { return r.v.Value }),
		texts(l, func(r messageRow) string { return r.v.By }),
		times(l, func(r messageRow) time.Time { return r.v.Sent }),
		ids(l, func(r messageRow) workitem.StepID { return r.v.Step }),
		optionalTimes(l, func(r messageRow) time.Time { return r.v.Taken }),
		ids(l, func(r messageRow) workitem.CaseID { return r.root }),
	}
}
