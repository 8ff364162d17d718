package workitem

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// LastYear is the last year in which anything can be due: a store keeps times as microseconds since 1970, in 64 bits.
const LastYear = 290_000

// CheckDue refuses a time that no store can keep. It would come back as one that is long past.
func CheckDue(t time.Time) error {
	if y := t.Year(); y > LastYear {
		return fmt.Errorf("the year %d is too far: nothing can be due after the year %d", y, LastYear)
	}
	return nil
}

// Item is the record of a work item. An Item is never changed in place by the engine: a new state is a new value, so a
// pointer to one is a snapshot.
type Item struct {
	ID         ID
	Case       CaseID
	Task       string // name of its task
	Generation int    // which activation of the task, from 1
	Number     int    // which item of that activation, from 1
	State      State

	Attempt     int // 1 for the first, predecessor's + 1 for a fresh item after a failure
	Predecessor ID  // the failed item that this one replaces; zero if none
	Successor   ID  // the fresh item that replaces this one; zero if none

	Input   json.RawMessage // what the work is about; nil if none
	Output  json.RawMessage // what the work gave; nil before completion
	Failure *Failure        // why it failed or was canceled; nil otherwise

	Queue    string // who may work on it; "" is the default queue
	Priority int    // higher goes first; 0 by default
	By       string // who acted on it last, as the caller named itself; "" if unknown, or if there was no act on it

	Created time.Time
	Due     time.Time // not to be worked on before; zero means at once
	Started time.Time // zero before the start; a reset clears it
	Ended   time.Time // zero before the end
}

// Label names the item within its case, as scenario files and tables show it: "task.generation.number".
func (it *Item) Label() string { return Label(it.Task, it.Generation, it.Number) }

// Label writes "task.generation.number".
func Label(task string, generation, number int) string {
	return task + "." + strconv.Itoa(generation) + "." + strconv.Itoa(number)
}
