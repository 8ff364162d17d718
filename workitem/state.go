package workitem

import (
	"fmt"
	"slices"
	"strings"
)

// State is where a work item stands. Its text form is what the database and the command line show.
type State uint8

// The states of a work item. The zero value is no state, as of an item that does not exist yet.
const (
	None State = iota
	Initialized
	Started
	Completed
	Failed
	Canceled
)

var stateNames = [...]string{"none", "initialized", "started", "completed", "failed", "canceled"}

// String returns the word for the state.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// ParseState reads the word for a state; "none" is not one.
func ParseState(word string) (State, error) {
	if i := slices.Index(stateNames[:], word); i > 0 {
		return State(i), nil
	}
	return None, fmt.Errorf("%q is not a state of a work item; the states are %s",
		word, strings.Join(stateNames[1:], ", "))
}

// Final reports whether an item in this state can never change again.
func (s State) Final() bool { return s >= Completed }

// Live reports whether an item in this state is still to be done.
func (s State) Live() bool { return s == Initialized || s == Started }

// Action is a request to change the state of a work item.
type Action uint8

// The actions. The zero value is none.
const (
	NoAction Action = iota
	Initialize
	Start
	Complete
	Fail
	Cancel
	Reset
)

var actionNames = [...]string{"none", "initialize", "start", "complete", "fail", "cancel", "reset"}

// String returns the word for the action.
func (a Action) String() string {
	if int(a) < len(actionNames) {
		return actionNames[a]
	}
	return fmt.Sprintf("action(%d)", uint8(a))
}

// MarshalText implements encoding.TextMarshaler with the word for the action; NoAction is an empty text.
func (a Action) MarshalText() ([]byte, error) {
	if a == NoAction {
		return nil, nil
	}
	return []byte(a.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. The error says which words there are.
func (a *Action) UnmarshalText(text []byte) (err error) {
	if *a = NoAction; len(text) > 0 {
		*a, err = ParseAction(string(text))
	}
	return err
}

// ParseAction reads the word for an action; "none" is not one.
func ParseAction(word string) (Action, error) {
	if i := slices.Index(actionNames[:], word); i > 0 {
		return Action(i), nil
	}
	return NoAction, fmt.Errorf("%q is not an action; the actions are %s", word, strings.Join(actionNames[1:], ", "))
}

// table is the whole life of a work item: from state and action to the next state.
var table = map[State]map[Action]State{
	None:        {Initialize: Initialized},
	Initialized: {Start: Started, Cancel: Canceled},
	Started:     {Complete: Completed, Fail: Failed, Cancel: Canceled, Reset: Initialized},
}

// Next returns the state after an action; false if the table forbids the action.
func Next(from State, a Action) (State, bool) {
	to, ok := table[from][a]
	return to, ok
}

// TransitionError says that the state of an item forbids an action. Nothing has changed.
type TransitionError struct {
	Item   ID
	Label  string // "task.generation.number", for people
	From   State
	Action Action
}

// Error names the item, its state, and the states from which the action would be allowed.
func (e *TransitionError) Error() string {
	var from []string
	for s := range stateNames {
		if _, ok := Next(State(s), e.Action); ok {
			from = append(from, State(s).String())
		}
	}
	return fmt.Sprintf("%s work item %s (%s): it is %s, and the action needs it to be %s",
		e.Action, e.Label, e.Item, e.From, strings.Join(from, " or "))
}
