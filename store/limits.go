package store

import (
	"context"
	"encoding/json"
	"math"
)

// LimitKey names a limit, and whose it is; the key "" is that of one which all share.
type LimitKey struct{ Limit, Key string }

// LimitRow is what a store keeps of a limit that its engines share. The State is the engine's matter.
type LimitRow struct {
	LimitKey
	State   json.RawMessage
	Until   int64 // when the row says no more than none does, in nanoseconds since 1970, and may be removed
	Version int64 // changes with each write; 0 if there is no row
}

// Lasting is the Until of a row that says something for as long as nothing changes it.
const Lasting = math.MaxInt64

// LimitFilter selects rows of limits: those of the Keys, and those with the Text. The zero value selects none.
type LimitFilter struct {
	Keys []LimitKey
	// Text selects the rows that are [Lasting] and whose State contains it; "" selects none. It costs a look at each that is.
	Text string
}

// LimitView is what the rows of limits are read with.
type LimitView struct {
	Now  int64   // by the clock of the database, in nanoseconds since 1970; 0 if it has none, and one engine only
	Self int64   // the number of this engine
	Live []int64 // the numbers of all that have the store open, this one too
	Rows []LimitRow
}

// Limits keeps the rows of limits. It is no part of an Update, and safe for concurrent use.
type Limits interface {
	// ReadLimits reads rows, in the order of the keys. One that is not there has the Version 0.
	ReadLimits(ctx context.Context, keys []LimitKey) (LimitView, error)

	// WriteLimits writes rows that were read, each unless another engine has written it since, and returns the keys of those that were
	// written. They are durable then. A row whose Until is before now may be removed. After an error each may have been written or not.
	WriteLimits(ctx context.Context, rows []LimitRow, now int64) (written []LimitKey, err error)
}
