package verify

import (
	"cmp"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/internal/statespace"
)

// Verdict is the result of a verification.
type Verdict uint8

// The verdicts. The zero value is Unknown.
const (
	// Unknown: the budget was exhausted before a decision. [Report.Exhausted] names the limit.
	Unknown Verdict = iota
	// Sound: from every state a case can complete, it always completes with nothing left over, and every task can
	// start.
	Sound
	// WeaklySound: a case can always complete, and properly, but some task can never start. It applies to nets with
	// cancellation regions or or-joins, for which soundness is too strict; any other such net is Unsound.
	WeaklySound
	// Unsound: there are findings.
	Unsound
)

// String returns "unknown", "sound", "weakly sound" or "unsound".
func (v Verdict) String() string {
	return [...]string{"unknown", "sound", "weakly sound", "unsound"}[min(v, Unsound)]
}

// The codes of findings, which make a net unsound.
const (
	NoOptionToComplete net.Code = "no-option-to-complete" // a state from which no run reaches the end
	ImproperCompletion net.Code = "improper-completion"   // the end is reached with work left over
	DeadTask           net.Code = "dead-task"             // a task that can never start
	Unbounded          net.Code = "unbounded"             // a condition in which tokens can pile up without bound
	Unsafe             net.Code = "unsafe"                // a place that can get a second token; only for plain nets
)

// The codes of warnings: what is probably not intended.
const (
	Isolated        net.Code = "isolated"           // a place or transition of a plain net without any arc
	SeveralEnds     net.Code = "several-ends"       // a plain net whose end is not one place
	OrJoinCircle    net.Code = "or-join-circle"     // or-joins that can wait for each other
	OrJoinIsAnd     net.Code = "or-join-is-and"     // an or-join whose inputs are always marked together
	OrJoinIsXor     net.Code = "or-join-is-xor"     // an or-join whose inputs are never marked together
	XorJoinTwice    net.Code = "xor-join-twice"     // an xor-join that can be marked twice, and then runs twice
	RegionUseless   net.Code = "region-useless"     // a member that the region can never affect
	AndSplitXorJoin net.Code = "and-split-xor-join" // parallel branches that meet in an xor-join
	XorSplitAndJoin net.Code = "xor-split-and-join" // alternative branches that meet in an and-join
)

// Limit names the exhausted budget of a verification. The zero value is NoLimit.
type Limit uint8

// The limits.
const (
	NoLimit     Limit = iota
	LimitStates       // the number of explored states
	LimitTime         // the time
	LimitMemory       // the memory
	LimitGrowth       // tokens pile up, so that there are infinitely many states
	LimitOrJoin       // an or-join could not be decided within its own budget
	LimitSplit        // an or-split has too many outputs to try every subset
	LimitTokens       // a place of a plain net begins with more tokens than are counted, or an arc moves more
)

// String returns "nothing", "states", "time", "memory", "growth", "or-join", "or-split" or "tokens".
func (l Limit) String() string {
	return [...]string{"nothing", "states", "time", "memory", "growth", "or-join", "or-split", "tokens"}[min(l, LimitTokens)]
}

// Options bounds a verification. The zero value bounds it only by states, so that equal nets get equal reports on every
// machine.
type Options struct {
	// States bounds the number of states that one search explores. Default 200,000.
	States int
	// MoreStates bounds the number of states that are explored after the first finding, to look for others. The default
	// is States if that is set; otherwise 5000, or 2000 if the net has or-joins, and fewer for nets of thousands of nodes,
	// whose states are large: 500 for 20,000 nodes.
	MoreStates int
	// Memory bounds the memory of one search, in bytes, approximately. Default 64 MiB, or proportionally more if States
	// is more than its default.
	Memory int
	// Time bounds the time of one search, measured by Now. Default 0: no bound. With a bound, two runs may differ.
	Time time.Duration
	// Now is the clock; it must be set for Time to count.
	Now func() time.Time
	// Silence has the codes of warnings to leave out.
	Silence []net.Code
}

// Report is the result of a verification.
type Report struct {
	Net      string    // name of the net
	Verdict  Verdict   // the answer
	Findings []Finding // sorted by code and subject; empty if Sound
	Warnings []Finding // sorted likewise, without the silenced ones
	// Exhausted names the budget that was exhausted. A verdict other than Unknown is valid nevertheless, but there may
	// be more findings than those listed. With [NoLimit] the list is complete, except that only one of many runs is
	// shown for an unbounded place or an improper completion.
	Exhausted Limit
	States    int // the number of explored states
}

// Finding is a violation or a warning.
type Finding struct {
	Code     net.Code
	Subject  string    // the task or condition that it is about; "" for the whole net
	Text     string    // one sentence, without the code
	Fix      string    // a possible correction, or ""
	Elements []Element // the elements concerned, the subject first
	Witness  *Witness  // a run that shows it; nil if none can (a dead task), and for most warnings
}

// Element is a task, a condition or a flow, with the position of its declaration.
type Element struct {
	Name string
	Pos  net.Pos
}

// Places returns the positions of the elements, each once.
func (f Finding) Places() []net.Pos {
	var places []net.Pos
	for _, e := range f.Elements {
		if !e.Pos.IsZero() && !slices.Contains(places, e.Pos) {
			places = append(places, e.Pos)
		}
	}
	return places
}

// String returns the code and the subject: "dead-task B", or "improper-completion".
func (f Finding) String() string {
	if f.Subject == "" {
		return string(f.Code)
	}
	return string(f.Code) + " " + f.Subject
}

const (
	defaultStates      = 200_000
	defaultMore        = 5000
	defaultMoreOrJoins = 2000
	fewestMore         = 500
	moreNodes          = 10_000_000 // of all these states together
	defaultMemory      = 64 << 20
)

// defaultMoreStates returns the default of [Options.MoreStates] for a net with that many nodes.
func defaultMoreStates(nodes int, orJoins bool) int {
	more := defaultMore
	if orJoins {
		more = defaultMoreOrJoins
	}
	return max(fewestMore, min(more, moreNodes/max(nodes, 1)))
}

// budget applies the defaults and starts the clock.
func (o *Options) budget(more int) statespace.Budget {
	l := statespace.Budget{States: o.States, MoreStates: o.MoreStates, Bytes: o.Memory}
	if l.MoreStates <= 0 {
		l.MoreStates = cmp.Or(max(o.States, 0), more)
	}
	if l.States <= 0 {
		l.States = defaultStates
	}
	if l.Bytes <= 0 {
		l.Bytes = defaultMemory * max(1, (l.States+defaultStates-1)/defaultStates)
	}
	if o.Time > 0 && o.Now != nil {
		end := o.Now().Add(o.Time)
		l.Late = func() bool { return !o.Now().Before(end) }
	}
	return l
}

// limitOf converts the exhausted budget of a search to a Limit.
func limitOf(b statespace.Limit) Limit {
	return [...]Limit{
		statespace.NoLimit: NoLimit, statespace.LimitStates: LimitStates, statespace.LimitTime: LimitTime, statespace.LimitMemory: LimitMemory,
		statespace.LimitGrowth: LimitGrowth, statespace.LimitOrJoin: LimitOrJoin,
	}[b]
}
