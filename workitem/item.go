package workitem

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// LastYear is the last year in which anything can be due: stores represent times as microseconds since 1970, in 64
// bits.
const LastYear = 290_000

// CheckDue returns an error for a time beyond LastYear, which a store would read back as a time in the past.
func CheckDue(t time.Time) error {
	if y := t.Year(); y > LastYear {
		return fmt.Errorf("the year %d is too far: nothing can be due after the year %d", y, LastYear)
	}
	return nil
}

// Item is the record of a work item. The engine never modifies an Item in place: a new state is a new value, so a
// pointer to an Item is a snapshot.
type Item struct {
	ID         ID
	Case       CaseID
	Task       string // name of its task
	Generation int    // which activation of the task, from 1
	Number     int    // which item of that activation, from 1
	State      State

	Attempt     int // 1 for the first, predecessor's + 1 for a fresh item after a failure
	Predecessor ID  // the failed item that this one replaces; zero if none
	Successor   ID  // the new item that replaces this one; zero if none

	// Retry is the retry policy that a repair gave the item, as an [activities.ItemRetry]; nil if it has that of its task.
	Retry json.RawMessage

	Input   json.RawMessage // the input of the work; nil if none
	Output  json.RawMessage // the output of the work; nil before completion
	Failure *Failure        // why it failed or was canceled; nil otherwise

	Queue    string // "" is the default queue
	Priority int    // higher goes first; 0 by default
	By       string // the actor of the last action on it; "" if unknown or none

	Created time.Time
	Due     time.Time // when work on it may start; zero means at once
	Started time.Time // zero before the start; a reset clears it
	Ended   time.Time // zero before the end
}

// Label names the item within its case, as scenario files and tables show it: "task.generation.number".
func (it *Item) Label() string { return Label(it.Task, it.Generation, it.Number) }

// Label writes "task.generation.number".
func Label(task string, generation, number int) string {
	return task + "." + strconv.Itoa(generation) + "." + strconv.Itoa(number)
}
