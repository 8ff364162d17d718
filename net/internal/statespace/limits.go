package statespace

// Limit names what a search ran out of. The zero value is NoLimit.
type Limit uint8

// The limits.
const (
	NoLimit     Limit = iota // the search came to its end
	LimitStates              // as many states as allowed were looked at
	LimitTime                // the time allowed passed
	LimitMemory              // the memory allowed is used up
	LimitGrowth              // somewhere there were more tokens than can be counted
	LimitOrJoin              // an or-join could not be decided within its own budget
)

// Budget bounds a search. A search that found something goes on for more states only, to find what else there is.
type Budget struct {
	States     int         // to look at in all
	MoreStates int         // to look at once something is found
	Bytes      int         // of memory
	Late       func() bool // reports whether the time is over; nil if it is not limited
}
