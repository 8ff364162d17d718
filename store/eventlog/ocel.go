package eventlog

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// ocelTarget writes OCEL 2.0: objects immediately, events to a temporary file, and both together when all types are
// known.
type ocelTarget struct {
	w           *bufio.Writer
	spool       *os.File // the events
	events      *bufio.Writer
	err         error
	objectComma string
	eventComma  string
	objectTypes map[string]map[string]bool // the names of attributes by type
	eventTypes  map[string]map[string]bool
}

// itemType is the object type of work items. The type of a case is its workflow.
const itemType = "work item"

func newOCEL(w io.Writer) (*ocelTarget, error) {
	spool, err := os.CreateTemp("", "tasq-events-*.json")
	if err != nil {
		return nil, err
	}
	t := &ocelTarget{w: bufio.NewWriter(w), spool: spool, events: bufio.NewWriter(spool),
		objectTypes: make(map[string]map[string]bool), eventTypes: make(map[string]map[string]bool)}
	t.text(t.w, `{"objects":[`)
	return t, nil
}

type (
	ocelAttribute struct {
		Name  string `json:"name"`
		Value string `json:"value"`
		Time  string `json:"time,omitempty"` // of an object: the time from which it has the value
	}
	ocelRelation struct {
		Object    string `json:"objectId"`
		Qualifier string `json:"qualifier"`
	}
	ocelRow struct { // an object or an event
		ID         string          `json:"id"`
		Type       string          `json:"type"`
		Time       string          `json:"time,omitempty"` // of an event
		Attributes []ocelAttribute `json:"attributes"`
		Relations  []ocelRelation  `json:"relationships"`
	}
	ocelTypeAttribute struct {
		Name string `json:"name"`
		Type string `json:"type"`
	}
	ocelType struct {
		Name       string              `json:"name"`
		Attributes []ocelTypeAttribute `json:"attributes"`
	}
)

func (t *ocelTarget) begin(*state.Case) {}

func (t *ocelTarget) hasObjects() bool { return true }

func (t *ocelTarget) item(it *store.ItemRow) { t.add(ofItem(it)) }

func (t *ocelTarget) ofCase(c *state.Case) { t.add(ofCase(c)) }

func ofCase(c *state.Case) *ocelRow {
	o := &ocelRow{ID: c.ID.String(), Type: c.Workflow, Relations: []ocelRelation{}}
	o.set("version", c.Version, c.Created)
	o.set("key", c.Key, c.Created)
	for _, name := range slices.Sorted(maps.Keys(c.Labels)) {
		o.set("label:"+name, c.Labels[name], c.Created)
	}
	o.set("state", state.CaseStarted.String(), c.Created)
	if c.State.Final() {
		o.set("state", c.State.String(), c.Ended)
	}
	if c.Failure != nil {
		o.set("code", c.Failure.Code, c.Ended)
	}
	if !c.Parent.IsZero() {
		o.relate("child of", c.Parent.String())
	}
	return o
}

func ofItem(it *store.ItemRow) *ocelRow {
	o := &ocelRow{ID: it.ID.String(), Type: itemType}
	o.set("task", it.Task, it.Created)
	o.set("label", it.Label(), it.Created)
	o.set("queue", it.Queue, it.Created)
	o.set("attempt", strconv.Itoa(it.Attempt), it.Created)
	o.set("state", workitem.Initialized.String(), it.Created)
	if !it.Started.IsZero() {
		o.set("state", workitem.Started.String(), it.Started)
	}
	if it.State.Final() {
		o.set("state", it.State.String(), it.Ended)
	}
	o.relate("item of", it.Case.String())
	if !it.Predecessor.IsZero() {
		o.relate("retry of", it.Predecessor.String())
	}
	return o
}

// set sets an attribute of an object from a time on, unless the value is empty.
func (o *ocelRow) set(name, value string, at time.Time) {
	if value != "" {
		o.Attributes = append(o.Attributes, ocelAttribute{name, value, stamp(at)})
	}
}

func (o *ocelRow) relate(qualifier, id string) {
	o.Relations = append(o.Relations, ocelRelation{id, qualifier})
}

func (t *ocelTarget) add(o *ocelRow) {
	remember(t.objectTypes, o.Type, o.Attributes)
	t.text(t.w, t.objectComma)
	t.json(t.w, o)
	t.objectComma = ","
}

func (t *ocelTarget) event(e *event) {
	row := &ocelRow{ID: e.id, Type: e.activity + " " + e.action, Time: stamp(e.at), Attributes: []ocelAttribute{}}
	for _, a := range []ocelAttribute{
		{Name: "activity", Value: e.activity}, {Name: "lifecycle", Value: e.transition}, {Name: "resource", Value: e.by}, {Name: "code", Value: e.code},
	} {
		if a.Value != "" {
			row.Attributes = append(row.Attributes, a)
		}
	}
	row.Relations = append(row.Relations, ocelRelation{e.caseID.String(), "case"})
	if !e.item.IsZero() {
		row.Relations = append(row.Relations, ocelRelation{e.item.String(), "item"})
	}
	remember(t.eventTypes, row.Type, row.Attributes)
	t.text(t.events, t.eventComma)
	t.json(t.events, row)
	t.eventComma = ","
}

func remember(types map[string]map[string]bool, name string, attributes []ocelAttribute) {
	known := types[name]
	if known == nil {
		known = make(map[string]bool)
		types[name] = known
	}
	for _, a := range attributes {
		known[a.Name] = true
	}
}

func (t *ocelTarget) finish() error { return t.err }

// end writes the parts in order, and deletes the temporary file of the events.
func (t *ocelTarget) end(whole bool) error {
	if whole {
		t.text(t.w, `],"events":[`)
		t.keep(t.events.Flush())
		_, err := t.spool.Seek(0, io.SeekStart)
		t.keep(err)
		_, err = io.Copy(t.w, t.spool)
		t.keep(err)
		t.text(t.w, `],"objectTypes":`)
		t.json(t.w, typesOf(t.objectTypes))
		t.text(t.w, `,"eventTypes":`)
		t.json(t.w, typesOf(t.eventTypes))
		t.text(t.w, "}\n")
		t.keep(t.w.Flush())
	}
	return errors.Join(t.err, t.spool.Close(), os.Remove(t.spool.Name()))
}

func typesOf(types map[string]map[string]bool) []ocelType {
	all := []ocelType{}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		row := ocelType{Name: name, Attributes: []ocelTypeAttribute{}}
		for _, a := range slices.Sorted(maps.Keys(types[name])) {
			row.Attributes = append(row.Attributes, ocelTypeAttribute{a, "string"})
		}
		all = append(all, row)
	}
	return all
}

// keep records the first error.
func (t *ocelTarget) keep(err error) {
	if t.err == nil {
		t.err = err
	}
}

func (t *ocelTarget) text(w *bufio.Writer, text string) {
	_, err := w.WriteString(text)
	t.keep(err)
}

func (t *ocelTarget) json(w *bufio.Writer, v any) {
	t.keep(printable.NewEncoder(w).Encode(v))
}
