package svg_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/svg"
)

var places = regexp.MustCompile(`<(?:svg|g class="(?:task|condition)|rect class="(?:box|grey|busy)|circle class="circle|path d=)[^>]*>`)

// looks are the attributes that change with the state.
var looks = regexp.MustCompile(` (?:class|fill|stroke|stroke-width|role|aria-labelledby)="[^"]*"`)

// layout is where the tasks, the conditions of their own and the arrows of a picture are.
func layout(picture string, hidden []string) []string {
	for _, name := range hidden { // circles that lie on arrows
		picture = regexp.MustCompile(`(?s)<g class="condition" data-name="`+regexp.QuoteMeta(name)+`"[^>]*>.*?</g>`).ReplaceAllString(picture, "")
	}
	var found []string
	for _, p := range places.FindAllString(picture, -1) {
		found = append(found, looks.ReplaceAllString(p, ""))
	}
	return found
}

// Whatever is marked and busy, a steady picture has everything at the same place.
func TestASteadyLayoutDoesNotDependOnTheMarking(t *testing.T) {
	n := review()
	var hidden []string
	for c := range n.NumConditions() {
		if name := n.ConditionName(net.ConditionID(c)); n.Implicit(net.ConditionID(c)) {
			hidden = append(hidden, strings.ReplaceAll(name, ">", "&gt;"))
		}
	}
	empty := layout(draw(t, n, svg.Options{Steady: true}), nil)
	require.NotEmpty(t, empty)
	rapid.Check(t, func(r *rapid.T) {
		o := svg.Options{Steady: true, Marking: make(net.Marking, n.NumConditions()), Busy: net.NewBits(n.NumTasks())}
		for c := range o.Marking {
			o.Marking[c] = rapid.Int32Range(0, 6).Draw(r, "tokens")
		}
		for i := range n.NumTasks() {
			if rapid.Bool().Draw(r, "busy") {
				o.Busy.Add(i)
			}
		}
		o.Marks = map[string]svg.Mark{"vote": {Badge: rapid.String().Draw(r, "badge"), Title: "x", Href: "/x"}}
		require.Equal(r, empty, layout(draw(r, n, o), hidden))
	})
}

// A token on an arrow shows: as a circle with dots, and in words.
func TestASteadyPictureShowsTokensOnArrows(t *testing.T) {
	o := marked()
	o.Steady = true
	picture := draw(t, review(), o)
	require.Contains(t, picture, `data-name="ask-&gt;read"`)
	require.Contains(t, text(t, picture, "title"), "condition ask->read: 1 token")
}

// A page with a strict security policy takes the style sheet from [svg.CSS]: nothing inside the picture is style.
func TestAPictureWithoutStyle(t *testing.T) {
	o := marked()
	require.Contains(t, draw(t, review(), o), "<style>")
	require.NotContains(t, draw(t, review(), o), "style=")
	o.NoStyle = true
	picture := draw(t, review(), o)
	require.NotContains(t, picture, "<style")
	for _, class := range regexp.MustCompile(`class="((?:tint|edge)\d)"`).FindAllStringSubmatch(picture, -1) {
		require.Contains(t, svg.CSS, "."+class[1]+"{")
	}
	require.Contains(t, picture, `class="tint0"`)
}

func TestMarksOfTasks(t *testing.T) {
	o := svg.Options{Marks: map[string]svg.Mark{"vote": {Class: "waits", Badge: "2/3", Title: `2 of 3 & "more"`, Href: "/items?a=1&b=2"}}}
	picture := draw(t, review(), o)
	require.Contains(t, picture, `<g class="task waits" data-name="vote" transform=`)
	require.Contains(t, picture, `<a href="/items?a=1&amp;b=2">`)
	require.Contains(t, text(t, picture, "title"), `2 of 3 & "more"`)
	require.Contains(t, text(t, picture, "text"), "2/3")
	require.Contains(t, picture, `role="group" aria-labelledby=`, "an image would hide the link")
	o.Marks = map[string]svg.Mark{"vote": {Badge: "2/3"}, "nobody": {Href: "/items"}}
	require.Contains(t, draw(t, review(), o), `role="img" aria-labelledby=`)
}

func TestWidthsAndTooltipsOfArrows(t *testing.T) {
	plain := draw(t, review(), svg.Options{})
	picture := draw(t, review(), svg.Options{Arrows: map[[2]string]svg.Arrow{{"draft", "ask"}: {Width: 3, Title: "30 <items>"}, {"ask", "vote"}: {Width: 9}, {"a", "b"}: {Width: 2}}})
	require.Contains(t, picture, `data-from="draft" data-to="ask" stroke-width="3"><title>30 &lt;items&gt;</title></path>`)
	require.Contains(t, picture, `data-from="ask" data-to="vote" stroke-width="4"/>`, "a wider line would stand out beside its head")
	picture = strings.NewReplacer(` stroke-width="3"><title>30 &lt;items&gt;</title></path>`, `/>`, ` stroke-width="4"/>`, `/>`).Replace(picture)
	require.Equal(t, plain, picture, "they take no space")
}

func TestArrowsNameTheirEnds(t *testing.T) {
	picture := draw(t, review(), svg.Options{})
	require.Contains(t, picture, `data-from="ask" data-to="waiting"`)
	require.Contains(t, picture, `data-from="decide" data-to="publish"`)
	require.NotContains(t, draw(t, review(), svg.Options{NoData: true}), " data-")
}
