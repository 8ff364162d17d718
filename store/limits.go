package store

import (
	"context"
	"encoding/json"
	"math"
)

// LimitKey identifies the state of a limit for a key; the key is "" for limits without keys.
type LimitKey struct{ Limit, Key string }

// LimitRow is the stored state of a limit that engines share. The store does not interpret State.
type LimitRow struct {
	LimitKey
	State   json.RawMessage
	Until   int64 // when the row has expired and may be removed, in nanoseconds since 1970
	Version int64 // changes with each write; 0 if there is no row
}

// Lasting is the Until of a row that does not expire.
const Lasting = math.MaxInt64

// LimitFilter selects rows of limits: those of the Keys, and those with the Text. The zero value selects none.
type LimitFilter struct {
	Keys []LimitKey
	// Text selects the [Lasting] rows whose State contains it; "" selects none. It reads each Lasting row.
	Text string
}

// LimitView is the result of reading rows of limits.
type LimitView struct {
	Now  int64   // the database's clock, in nanoseconds since 1970; 0 if it has no clock, and only one engine
	Self int64   // the number of this engine
	Live []int64 // the numbers of all live engines, including this one
	Rows []LimitRow
}

// Limits stores rows of limits, outside of Update. It is safe for concurrent use.
type Limits interface {
	// ReadLimits reads rows, in the order of the keys. A missing row has the Version 0.
	ReadLimits(ctx context.Context, keys []LimitKey) (LimitView, error)

	// WriteLimits writes each row unless another engine has written it since it was read, and returns the keys of the written rows,
	// which are durable. A row whose Until is before now may be removed. After an error, any of the rows may have been written.
	WriteLimits(ctx context.Context, rows []LimitRow, now int64) (written []LimitKey, err error)
}
