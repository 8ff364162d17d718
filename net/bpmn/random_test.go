package bpmn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/internal/modeltest"
	"github.com/tasq-dev/tasq/net"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// TestSoundBlocksMapToSoundNets puts processes together from blocks that are sound by construction: branches that are
// opened and closed by gateways of the same kind, loops, sub-processes, events at their borders, errors thrown out of
// them, event sub-processes, terminating ends. Each net that such a process becomes must be sound, by looking at every
// state. With TASQ_NIGHTLY=1 the processes are larger; -rapid.checks sets how many there are.
func TestSoundBlocksMapToSoundNets(t *testing.T) {
	depth := testsize.Pick(2, 2, 3)
	rapid.Check(t, func(t *rapid.T) {
		m := &model{t: t}
		m.scope("P", depth, false, "")
		src := process(m.b.String())
		r, err := Decode(strings.NewReader(src), Options{})
		require.NoError(t, err, src)
		for _, d := range r.Definitions() {
			n, err := net.Compile(d)
			require.NoError(t, err, "%s\n%s", src, modeltest.Show(d))
			o := modeltest.Explore(n, 3000)
			if !o.Big {
				require.True(t, o.Sound, "%v\nstuck in %s\nleft %s\n%s\n%s", o, o.Stuck, o.Left, src, modeltest.Show(d))
			}
		}
	})
}

// model writes a random process. A block has one element where it begins and one where it ends.
type model struct {
	t *rapid.T
	b strings.Builder
	n int
}

func (m *model) id(kind string) string {
	m.n++
	return fmt.Sprint(kind, m.n)
}

func (m *model) write(format string, args ...any) { fmt.Fprintf(&m.b, format+"\n", args...) }

func (m *model) flow(from, to string) { m.write("%s -> %s", from, to) }

func (m *model) chance(percent int) bool { return rapid.IntRange(0, 99).Draw(m.t, "chance") < percent }

// scope writes what is in a process or sub-process. What is inside a loop may run again, so it holds no event that
// leads to an end of its own. throws names an error that someone outside catches.
func (m *model) scope(id string, depth int, loop bool, throws string) {
	start, end := "start"+id, "end"+id
	m.write("<startEvent id='%s'/>", start)
	first, last := m.block(depth, loop, throws)
	m.flow(start, first)
	if m.chance(20) && !loop { // an event sub-process beside it all
		h := m.id("handler")
		m.write("<subProcess id='%s' triggeredByEvent='true'>", h)
		m.write("<startEvent id='%ss' isInterrupting='%v'><messageEventDefinition/></startEvent>", h, m.chance(50))
		m.write("<task id='%st'/>\n%ss -> %st\n</subProcess>", h, h, h)
	}
	m.write("<endEvent id='%s'/>", end)
	m.flow(last, end)
}

func (m *model) block(depth int, loop bool, throws string) (first, last string) {
	if depth == 0 {
		return m.leaf(throws)
	}
	blocks := []func(int, bool, string) (string, string){
		m.sequence, m.branches, m.branches, m.choiceOfEvents, m.again, m.sub, m.sub, m.watchedTask,
	}
	return blocks[rapid.IntRange(0, len(blocks)-1).Draw(m.t, "block")](depth-1, loop, throws)
}

// leaf is a task, behind which a case may also take another way out.
func (m *model) leaf(throws string) (string, string) {
	task := m.id("task")
	m.write("<task id='%s'/>", task)
	event := "<terminateEventDefinition/>"
	switch {
	case throws != "" && m.chance(40):
		event = "<errorEventDefinition errorRef='" + throws + "'/>"
	case !m.chance(8):
		return task, task
	}
	x, out, on := m.id("way"), m.id("out"), m.id("on")
	m.write("<exclusiveGateway id='%s'/>\n<endEvent id='%s'>%s</endEvent>\n<task id='%s'/>", x, out, event, on)
	m.flow(task, x)
	m.flow(x, out)
	m.flow(x, on)
	return task, on
}

func (m *model) sequence(depth int, loop bool, throws string) (string, string) {
	first, a := m.block(depth, loop, throws)
	b, last := m.block(depth, loop, throws)
	m.flow(a, b)
	return first, last
}

func (m *model) branches(depth int, loop bool, throws string) (string, string) {
	kind := rapid.SampledFrom([]string{"exclusive", "parallel", "inclusive"}).Draw(m.t, "gateway")
	open, shut := m.id("open"), m.id("shut")
	fallback := ""
	var firsts []string
	m.write("<%sGateway id='%s'/>", kind, shut)
	for range rapid.IntRange(2, 3).Draw(m.t, "branches") {
		first, last := m.block(depth, loop, throws)
		m.flow(last, shut)
		firsts = append(firsts, first)
	}
	if kind != "parallel" && m.chance(50) {
		fallback = " default='" + open + "-" + firsts[0] + "'"
	}
	m.write("<%sGateway id='%s'%s/>", kind, open, fallback)
	for _, first := range firsts {
		m.flow(open, first)
	}
	return open, shut
}

func (m *model) choiceOfEvents(depth int, loop bool, throws string) (string, string) {
	open, shut := m.id("await"), m.id("shut")
	m.write("<eventBasedGateway id='%s'/>\n<exclusiveGateway id='%s'/>", open, shut)
	for range 2 {
		event := m.id("event")
		m.write("<intermediateCatchEvent id='%s'><messageEventDefinition/></intermediateCatchEvent>", event)
		first, last := m.block(depth, loop, throws)
		m.flow(open, event)
		m.flow(event, first)
		m.flow(last, shut)
	}
	return open, shut
}

func (m *model) again(depth int, _ bool, throws string) (string, string) {
	begin, end := m.id("merge"), m.id("choice")
	m.write("<exclusiveGateway id='%s'/>\n<exclusiveGateway id='%s'/>", begin, end)
	first, last := m.block(depth, true, throws)
	m.flow(begin, first)
	m.flow(last, end)
	m.flow(end, begin)
	return begin, end
}

// sub is a sub-process, with events at its border or not. Errors are thrown in it that its own event catches, or one
// further out.
func (m *model) sub(depth int, loop bool, throws string) (string, string) {
	id, shut := m.id("sub"), m.id("shut")
	own := m.chance(50)
	inside := throws
	if own {
		inside = "E" + id
	}
	m.write("<subProcess id='%s'>", id)
	before := m.b.Len()
	m.scope(id, depth, loop && (own || throws != ""), inside)
	caught := strings.Contains(m.b.String()[before:], "errorRef='E"+id+"'")
	m.write("</subProcess>\n<exclusiveGateway id='%s'/>", shut)
	m.flow(id, shut)
	m.border(id, shut, loop)
	if caught {
		m.write("<boundaryEvent id='%sE' attachedToRef='%s'><errorEventDefinition errorRef='E%s'/></boundaryEvent>",
			id, id, id)
		m.flow(id+"E", shut)
	}
	return id, shut
}

func (m *model) watchedTask(_ int, loop bool, _ string) (string, string) {
	id, shut := m.id("task"), m.id("shut")
	m.write("<task id='%s'/>\n<exclusiveGateway id='%s'/>", id, shut)
	m.flow(id, shut)
	m.border(id, shut, loop)
	return id, shut
}

// border attaches events to an activity. One that interrupts leads to what follows, one that does not to a task of its
// own.
func (m *model) border(id, shut string, loop bool) {
	if m.chance(40) {
		m.write("<boundaryEvent id='%sT' attachedToRef='%s'><timerEventDefinition/></boundaryEvent>", id, id)
		m.flow(id+"T", shut)
	}
	if m.chance(20) && !loop {
		m.write("<boundaryEvent id='%sM' attachedToRef='%s' cancelActivity='false'>", id, id)
		m.write("<messageEventDefinition/></boundaryEvent>")
		m.write("<task id='%sN'/>", id)
		m.flow(id+"M", id+"N")
	}
}
