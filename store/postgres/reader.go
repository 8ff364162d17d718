package postgres

import (
	"context"
	"math"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/internal/sqlkit"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// reader implements [store.Reader] on a connection with an open read transaction.
type reader struct {
	c     *conn
	nets  *tables.Nets
	until int64 // the position of the last entry that the tables have; 0 if they have all
	user  *sqlkit.UserDB
	ended bool

	planned bool // whether the planner has the settings of the role, see usersReads
}

// last returns the position of the last entry that the view shows.
func (r *reader) last() int64 {
	if r.until > 0 {
		return r.until
	}
	return math.MaxInt64
}

// Tree implements [store.Reader].
// A view has one snapshot, so the queries of a tree need no check against each other, as those of a transaction do.
func (r *reader) Tree(_ context.Context, root workitem.CaseID) (*state.Tree, error) {
	return loadTree(r.c, r.nets, root, tables.NothingNewer)
}

// Trees implements [store.Reader].
func (r *reader) Trees(_ context.Context, roots []workitem.CaseID) ([]*state.Tree, error) {
	return loadTrees(r.c, r.nets, roots)
}

// Root implements [store.Reader].
func (r *reader) Root(_ context.Context, id [16]byte) (workitem.CaseID, error) {
	return findRoot(r.c, id)
}

// DB implements [store.Reader]. The transaction is read-only.
func (r *reader) DB() domain.DB {
	if r.ended {
		return sqlkit.DeadDB()
	}
	if r.user == nil {
		r.user = sqlkit.NewUserDB(userConn{r.c.raw}, r, domain.Postgres, r.c.sql.schema)
	}
	return r.user
}

// Lock implements [sqlkit.Scope].
func (r *reader) Lock() { r.c.mu.Lock() }

// Unlock implements [sqlkit.Scope].
func (r *reader) Unlock() { r.c.mu.Unlock() }

// Do implements [sqlkit.Scope]. A statement that fails must not end the view.
//
// After an error, PostgreSQL refuses all statements of the transaction up to a ROLLBACK TO, so each statement of the
// user gets a savepoint. That costs two more round trips, which is acceptable in a view but not in a commit.
func (r *reader) Do(statement string, f func() error) error {
	if err := allowed(statement); err != nil {
		return err
	}
	ctx := context.Background()
	begin := "SAVEPOINT tasq"
	if !r.planned {
		begin = usersReads + begin
	}
	if err := r.c.exec(ctx, begin); err != nil {
		return err
	}
	r.planned = true
	end := "RELEASE SAVEPOINT tasq"
	err := f()
	if err != nil {
		end = "ROLLBACK TO SAVEPOINT tasq; " + end
	}
	if failed := r.c.exec(ctx, end); err == nil {
		err = failed
	}
	return err
}

// Met implements [sqlkit.Scope].
// Do has rolled back to its savepoint already, so the error concerns only its statement.
func (r *reader) Met(err error) error { return err }

// Handles that the user has kept fail from then on: the connection goes back to the pool, and may be in another view.
func (r *reader) end() {
	r.ended = true
	if r.user != nil {
		r.user.End()
	}
}
