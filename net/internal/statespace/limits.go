package statespace

// Limit is the exhausted budget of a search. The zero value is NoLimit.
type Limit uint8

// The limits.
const (
	NoLimit     Limit = iota // the search is complete
	LimitStates              // the number of explored states
	LimitTime                // the time
	LimitMemory              // the memory
	LimitGrowth              // a count of tokens overflowed
	LimitOrJoin              // an or-join could not be decided within its own budget
)

// Budget bounds a search. After the first violation, a search continues only for MoreStates, to find others.
type Budget struct {
	States     int         // to explore in all
	MoreStates int         // to explore after the first violation
	Bytes      int         // of memory
	Late       func() bool // reports whether the time is over; nil if there is no limit
}
