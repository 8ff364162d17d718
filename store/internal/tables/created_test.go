package tables

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/workitem"
)

// A time before 1970 has an id as its bound, too: PostgreSQL takes no empty one.
func TestIDsOfTimesBefore1970(t *testing.T) {
	for _, at := range []time.Time{time.UnixMilli(-1), time.Unix(0, 0), time.Date(1830, 1, 1, 0, 0, 0, 0, time.UTC)} {
		_, err := workitem.ParseID(leastID(at))
		require.NoError(t, err, at)
	}
	require.Equal(t, workitem.LeastKey[any](time.UnixMilli(1)).String(), leastID(time.UnixMilli(1)))
}
