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
// The same input produces the same bytes on every machine: all sizes are integers, and text is measured with a table.
// Colors are CSS variables that follow the light or dark scheme of the page, with attributes for programs without CSS.
//
// A net wider than [Options].Width is drawn in rows, one below the other. A flow from one row to another ends and
// continues in connectors, small grey labels with the same number.
//
// The layout is that of Sugiyama, Tagawa and Toda (1981). Each step has its own file: flows that close a loop are found
// (layer.go), elements are assigned to layers (layer.go), layers are ordered with few crossings (order.go, sweep.go),
// and elements are placed by the method of Brandes and Köpf (2002), with ports and sizes (align.go, compact.go). No
// arrow can cross a box, since arrows have heights of their own wherever there are boxes, and bend only between layers.
package svg

import (
	"io"

	"github.com/tasq-dev/tasq/net"
)

// Options configures what a picture shows besides the net. The zero value shows only the net.
type Options struct {
	Title    string               // title of the picture; the name of the net by default
	Labels   map[string]string    // text of a task or a condition, by its name; the name by default
	Flows    map[[2]string]string // text of a flow, by the names of both ends; none by default
	Marking  net.Marking          // tokens to show; nil for none
	Busy     net.Bits             // active tasks, by number; nil for none
	NoLegend bool                 // omit the line below the picture that explains joins, splits and regions
	// Unnamed are tasks and conditions with generated names. They are drawn small and without text, unless they have a
	// label; the name is in the tooltip.
	Unnamed map[string]bool
	// Marks are drawn on tasks, by name; nil for none. They take no space, so the layout is the same without them.
	Marks map[string]Mark
	// Arrows are widths and tooltips of flows, by the names of both ends; nil for none. They take no space either.
	Arrows map[[2]string]Arrow
	// Steady gives the same layout for every marking: a token on a flow between two tasks is drawn on the arrow and
	// takes no space. Otherwise such a token has its own circle, which moves the elements around it.
	Steady bool
	// NoStyle omits the style sheet, for a page that contains [CSS] itself, and whose security policy forbids inline
	// styles.
	NoStyle bool
	// NoData omits the attributes data-name of elements, and data-from and data-to of arrows, for a page without a script
	// that reads them. Their names are in the tooltips, too.
	NoData bool
	// Width is the maximum width of a row, in pixels; 1800 by default, and unlimited if it is negative. A wider net is
	// drawn in several rows. A single layer is never divided, whatever its width.
	Width int
}

// Mark is what a picture shows of the state of a task. The zero value shows nothing.
type Mark struct {
	Class string // added to the class of the task's group, for a page's style sheet
	Badge string // a short text in a pill at the corner of the box, such as "2/3"
	Title string // tooltip of the task, instead of its description
	Href  string // makes the task a link
}

// Arrow is how a flow is drawn. The zero value is an arrow like the others.
type Arrow struct {
	Width int    // in pixels, up to 4, the most that its head covers; 0 is the width of the others
	Title string // tooltip of the arrow
}

// CSS is the style sheet of the pictures, for a page that shows some with [Options].NoStyle.
const CSS = style

// Draw writes the picture of a net as one SVG document. The error is that of the writer.
//
// Its time grows only slightly faster than the size of the net: a net of 200 elements takes some milliseconds. In a net
// of many thousands of elements, a flow that would pass too many layers is divided, like one that leads to another row.
func Draw(w io.Writer, n *net.Net, o Options) error {
	return layOut(newFigure(n, &o)).write(w)
}
