// Package svg draws a net as an SVG picture, with its own layout and without any other program.
//
// The picture reads from left to right. Conditions are circles: the start contains a triangle, the end a square.
// Tasks are boxes in the style of YAWL: a strip on the left shows the join, one on the right the split, each only
// if more than one flow enters or leaves.
//
//	triangle that points to the box          and
//	triangle that points away from the box   xor
//	diamond                                  or
//
// A composite task has a double border, a routing task is grey. A flow from task to task is an arrow; its implicit
// condition is drawn as a small circle only if it holds tokens or belongs to a region. The cancellation region of a
// task is a tinted area around its members and nothing else, and the task has the same tint. With a marking, tokens are
// drawn as dots up to four, and more as a number.
//
// The same input produces the same bytes on every machine: all sizes are integers, and text is measured with a table. Colors
// are CSS variables that follow the light or dark scheme of the page, with attributes for programs without CSS.
//
// A net wider than [Options].Width is drawn in rows, one below the other. A flow from one row to another ends and
// continues in connectors, small grey labels with the same number.
//
// The layout is that of Sugiyama, Tagawa and Toda (1981). Each step has its own file: flows that close a loop are
// found (layer.go), elements are assigned to layers (layer.go), layers are ordered with few crossings (order.go, sweep.go),
// and elements are placed by the method of Brandes and Köpf (2002), with ports and sizes (align.go, compact.go). No
// arrow can cross a box, since arrows have heights of their own wherever there are boxes, and bend only between layers.
package svg

import (
	"io"

	"github.com/tasq-dev/tasq/net"
)

// Options says what a picture shows besides the net. The zero value shows the net alone.
type Options struct {
	Title    string               // what the picture is called; the name of the net by default
	Labels   map[string]string    // what is written for a task or a condition, by its name; the name by default
	Flows    map[[2]string]string // what is written at a flow, by the names of both its ends; nothing by default
	Marking  net.Marking          // tokens to show; nil for none
	Busy     net.Bits             // tasks that are at work, by number; nil for none
	NoLegend bool                 // leave out the line below the picture that explains gates and regions
	// Unnamed are tasks and conditions whose names stand for nothing that a person wrote. They are drawn small and without
	// text, unless they have a label; what points at them shows the name.
	Unnamed map[string]bool
	// Marks are put on tasks, by name; nil for none. They take no room, so the layout is the same without them.
	Marks map[string]Mark
	// Steady gives one layout for every marking: a token on a flow between two tasks is drawn on the arrow and takes no room.
	// Without it, such a token has a circle of its own, which moves what is around it.
	Steady bool
	// NoStyle leaves the style sheet out, for a page whose own has [CSS], and whose security policy refuses one inside.
	NoStyle bool
	// Width is the most that a row may take, in pixels; 1800 by default, and without bound if it is negative. A net that is
	// wider is drawn in rows below one another. A single layer is never cut, whatever its width.
	Width int
}

// Mark is what a picture shows of the state of a task. The zero value shows nothing.
type Mark struct {
	Class string // is added to the class of the task's group, for a page's style sheet
	Badge string // a short text in a pill at the corner of the box, such as "2/3"
	Title string // what is shown where one points at the task, instead of the description of the task
	Href  string // makes the task a link
}

// CSS is the style sheet of the pictures, for a page that shows some with [Options].NoStyle.
const CSS = style

// Draw writes the picture of a net as one SVG document. The error is that of the writer.
//
// Its time grows with the size of the net and not much faster: a net of 200 elements takes some milliseconds. In a net
// of many thousands, a flow that would run past too many others is cut in two, as one that leads to another row is.
func Draw(w io.Writer, n *net.Net, o Options) error {
	return layOut(newFigure(n, &o)).write(w)
}
