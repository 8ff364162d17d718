package commit_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine/internal/commit"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// undone is the error of a request whose connection ended as it ran.
func undone(cause error) error { return fmt.Errorf("%w: %w", store.ErrUndone, cause) }

var errNotClaimed = errors.New("the job is not claimed")

// claimed is a job that is claimed by a request, and with what a later request records.
type claimed struct {
	is     bool
	claims []error // what ends the first runs of the claim
	record []error // the same for the record
}

func next(errs *[]error) (err error) {
	if len(*errs) > 0 {
		err, *errs = (*errs)[0], (*errs)[1:]
	}
	return err
}

func (c *claimed) requests() (claim, record *commit.Request) {
	return &commit.Request{Run: func(*commit.Tx) error {
			c.is = false // each transaction begins with a claim
			err := next(&c.claims)
			c.is = err == nil
			return err
		}}, &commit.Request{Run: func(*commit.Tx) error {
			if !c.is {
				return errNotClaimed
			}
			err := next(&c.record)
			c.is = err == nil
			return err
		}}
}

// The connection ends twice: as a record runs, and as the claim before it runs again. The record follows the claim nevertheless.
func TestARecordRunsAgainAfterItsClaim(t *testing.T) {
	c := &claimed{claims: []error{nil, undone(store.ErrNotCommitted)}, record: []error{undone(store.ErrDisconnected)}}
	claim, record := c.requests()
	errs := batchOf(t, &fleetStore{newest: map[workitem.CaseID]int64{}}, claim, record)
	require.Equal(t, []error{nil, nil}, errs)
}

// The commit is lost, and then the connection of the claim as it runs again. What comes after it in the batch does not run before it.
func TestARecordOfARepeatedBatchRunsAfterItsClaim(t *testing.T) {
	c := &claimed{claims: []error{nil, undone(store.ErrNotCommitted)}}
	claim, record := c.requests()
	s := &fleetStore{newest: map[workitem.CaseID]int64{}}
	s.before = func(update int) {
		if update == 1 {
			c.is, s.lost = false, 1
		}
	}
	require.Equal(t, []error{nil, nil}, batchOf(t, s, claim, record))
}
