package eventlog

import (
	"bufio"
	"encoding/xml"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
)

// xesTarget writes XES: a trace for each root case, with the events of its descendants.
type xesTarget struct{ w *bufio.Writer }

// The published schema has no target namespace: a log with a namespace is not valid by it.
const xesHead = xml.Header + `<log xes.version="1849.2016" xes.features="">
<extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>
<extension name="Identity" prefix="identity" uri="http://www.xes-standard.org/identity.xesext"/>
<extension name="Lifecycle" prefix="lifecycle" uri="http://www.xes-standard.org/lifecycle.xesext"/>
<extension name="Organizational" prefix="org" uri="http://www.xes-standard.org/org.xesext"/>
<extension name="Time" prefix="time" uri="http://www.xes-standard.org/time.xesext"/>
<global scope="trace"><string key="concept:name" value=""/></global>
<global scope="event"><string key="concept:name" value=""/><string key="lifecycle:transition" value="complete"/><date key="time:timestamp" value="1970-01-01T00:00:00Z"/></global>
<classifier name="Activity" scope="event" keys="concept:name"/>
<classifier name="ActivityAndTransition" scope="event" keys="concept:name lifecycle:transition"/>
<string key="lifecycle:model" value="standard"/>
`

func newXES(w io.Writer) *xesTarget {
	t := &xesTarget{bufio.NewWriter(w)}
	t.write(xesHead)
	return t
}

// write writes texts; finish and end return the error.
func (t *xesTarget) write(texts ...string) {
	for _, text := range texts {
		_, _ = t.w.WriteString(text)
	}
}

// attribute writes an attribute of an element, unless its value is empty.
func (t *xesTarget) attribute(kind, key, value string) {
	if value == "" {
		return
	}
	t.write("<", kind, ` key="`)
	_ = printable.XML(t.w, key) // finish and end return the error
	t.write(`" value="`)
	_ = printable.XML(t.w, value)
	t.write(`"/>`)
}

func (t *xesTarget) time(key string, at time.Time) {
	if !at.IsZero() {
		t.attribute("date", key, stamp(at))
	}
}

func (t *xesTarget) begin(root *state.Case) {
	t.write("<trace>")
	t.attribute("string", "concept:name", root.ID.String())
	t.attribute("id", "identity:id", root.ID.String())
	t.attribute("string", "tasq:workflow", root.Workflow)
	t.attribute("string", "tasq:version", root.Version)
	t.attribute("string", "tasq:state", root.State.String())
	t.attribute("string", "tasq:key", root.Key)
	t.time("tasq:created", root.Created)
	t.time("tasq:ended", root.Ended)
	for _, name := range slices.Sorted(maps.Keys(root.Labels)) {
		t.attribute("string", "label:"+name, root.Labels[name])
	}
	t.write("\n")
}

// The events of a trace contain the attributes of their objects.
func (t *xesTarget) hasObjects() bool { return false }

func (t *xesTarget) item(*store.ItemRow) {}

func (t *xesTarget) ofCase(*state.Case) {}

func (t *xesTarget) event(e *event) {
	t.write("<event>")
	t.attribute("string", "concept:name", e.activity)
	t.attribute("string", "lifecycle:transition", e.transition)
	t.time("time:timestamp", e.at)
	t.attribute("id", "identity:id", e.id)
	t.attribute("string", "concept:instance", e.label)
	t.attribute("string", "org:resource", e.by)
	t.attribute("string", "org:group", e.queue)
	t.attribute("string", "tasq:action", e.action)
	t.attribute("string", "tasq:workflow", e.workflow)
	t.attribute("id", "tasq:case", e.caseID.String())
	if !e.item.IsZero() {
		t.attribute("id", "tasq:item", e.item.String())
	}
	if e.attempt > 0 {
		t.attribute("int", "tasq:attempt", strconv.Itoa(e.attempt))
	}
	t.attribute("string", "tasq:code", e.code)
	t.write("</event>\n")
}

func (t *xesTarget) finish() error {
	t.write("</trace>\n")
	_, err := t.w.Write(nil) // returns the first error of any write
	return err
}

func (t *xesTarget) end(whole bool) error {
	if !whole {
		return nil
	}
	t.write("</log>\n")
	return t.w.Flush()
}

// stamp formats a time for both formats.
func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000Z") }
