package xmlread

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func parse(t *testing.T, src string) *Element {
	t.Helper()
	root, err := ParseString(src, Options{File: "f.xml"})
	require.NoError(t, err)
	return root
}

func TestTree(t *testing.T) {
	root := parse(t, "<?xml version='1.0'?>\n<a:net xmlns:a=\"u\" id = 'n1'>\n"+
		"  <p id=\" p1 \" x:type=\"T\">one<b/>two</p>\n</a:net>\n")
	require.Equal(t, "net", root.Name)
	require.Equal(t, 2, root.Line)
	require.Equal(t, "n1", root.ID())
	p := root.Child("p")
	require.Equal(t, 3, p.Line)
	require.Equal(t, "p1", p.ID())
	require.Equal(t, "T", p.Attr("type"), "an attribute is found behind its prefix")
	require.Equal(t, "onetwo", p.Text)
	require.Equal(t, `<p id=" p1 " x:type="T">one<b/>two</p>`, p.Raw())
	require.Equal(t, `p "p1"`, p.String())
	require.Nil(t, root.Child("q"))
}

// What real files do although XML forbids it.
func TestLenient(t *testing.T) {
	require.Equal(t, "a<b&c", parse(t, "<x>a&lt;b&amp;c</x>").Text)
	require.Equal(t, "A&nbsp;é", parse(t, "<x>&#65;&nbsp;&#xe9;</x>").Text, "an unknown entity stays as written")
	require.Equal(t, "ab", parse(t, "<x>a<!-- one -- two --->b</x>").Text)
	require.Equal(t, "<y>", parse(t, "<x><![CDATA[<y>]]></x>").Text)
	require.Equal(t, "é", parse(t, "<?xml version='1.0' encoding='ISO-8859-1'?><x>\xe9</x>").Text)
	require.Equal(t, "\uFFFD", parse(t, "<x>\xe9</x>").Text)
	require.Equal(t, "z", parse(t, "\xef\xbb\xbf<x>z</x>").Text)
	require.Equal(t, "z", parse(t, "\xff\xfe<\x00x\x00>\x00z\x00<\x00/\x00x\x00>\x00").Text)
	require.Equal(t, "", parse(t, "<!DOCTYPE x [<!ELEMENT x (#PCDATA)>]><x/>").Text)
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		src, text string
		code      Code
	}{
		{"", "f.xml: empty: the file is empty", Empty},
		{"<!-- only -->", "f.xml: empty: the file has no element", Empty},
		{"PK\x03\x04", `f.xml:1: wrong-format: this is not XML: it begins with "PK\x03\x04"`, WrongFormat},
		{"<a>\n<b>\n",
			"f.xml:2: malformed: <b> is never closed: the file ends inside it, and may have been cut short; save or copy it again", Malformed},
		{"<a>\n<b></a>", "f.xml:2: malformed: </a> closes <b>, which was opened in line 2: close that before it", Malformed},
		{"<a/>\n<b/>", "f.xml:2: malformed: <b> stands behind the end of the root element; a file has one root element, with all others in it", Malformed},
		{"<a x=1/>",
			`f.xml:1: malformed: the tag <a> holds something that is no attribute; its form is name="value"`, Malformed},
		{"<a b='", "f.xml:1: malformed: the tag <a> is never closed: the file may have been cut short; save or copy it again", Malformed},
		{"<a", "f.xml:1: malformed: the tag <a> is never closed: the file may have been cut short; save or copy it again", Malformed},
		{"<a id=\"1\" na", "f.xml:1: malformed: the tag <a> is never closed: the file may have been cut short; save or copy it again", Malformed},
		{"<a>\n<b id=\"1\" name=\"pa", "f.xml:2: malformed: the tag <b> is never closed: the file may have been cut short; save or copy it again", Malformed},
		{"<a><!-- ", "f.xml:1: malformed: the comment is never closed: the file may have been cut short; save or copy it again", Malformed},
		{"<a>\r\n<b>\r\n</a>", "f.xml:3: malformed: </a> closes <b>, which was opened in line 2: close that before it", Malformed},
		{"<a>\r<b>\r</a>", "f.xml:3: malformed: </a> closes <b>, which was opened in line 2: close that before it", Malformed},
		{"<a>x < y</a>", `f.xml:1: malformed: "<" begins no tag here; in a text it is written &lt;`, Malformed},
		{"<a/>text", `f.xml:1: malformed: there is text outside the root element, to be taken out: "text"`, Malformed},
		{"</a>", "f.xml:1: malformed: </a> closes nothing; take it out, or open the element before it", Malformed},
		{"<!DOCTYPE a [\n<!ENTITY x 'y'>]><a>&x;</a>",
			"f.xml:2: unsupported: the file declares entities, which are never expanded; save it without a document type",
			Unsupported},
		{"<?xml version='1.0' encoding='EBCDIC'?><a/>",
			`f.xml:1: wrong-format: the encoding "ebcdic" is not read; save the file as UTF-8`, WrongFormat},
	} {
		_, err := ParseString(c.src, Options{File: "f.xml"})
		var e *Error
		require.ErrorAs(t, err, &e, c.src)
		require.Equal(t, c.text, e.Error())
		require.Equal(t, c.code, e.Code)
	}
}

func TestLimits(t *testing.T) {
	small := Limits{MaxBytes: 100, MaxDepth: 3, MaxNodes: 5}
	code := func(src string) Code {
		_, err := Parse(strings.NewReader(src), Options{Limits: small})
		var e *Error
		if errors.As(err, &e) {
			return e.Code
		}
		require.NoError(t, err)
		return ""
	}
	require.Equal(t, Code(""), code("<a><b><c/></b></a>"))
	require.Equal(t, TooLarge, code("<a><b><c><d/></c></b></a>"))
	require.Equal(t, Code(""), code("<a><b/><b/><b x=''/></a>"))
	require.Equal(t, TooLarge, code("<a><b/><b/><b x='' y=''/></a>"))
	require.Equal(t, TooLarge, code("<a>"+strings.Repeat("x", 100)+"</a>"))
}

func TestSkip(t *testing.T) {
	skip := func(name string) bool { return name == "graphics" }
	root, err := ParseString("<a><graphics><b><c/></b>text</graphics><graphics x='1'/><d/></a>",
		Options{Skip: skip, Limits: Limits{MaxNodes: 2}})
	require.NoError(t, err, "what is passed over does not count")
	require.Equal(t, "d", root.first.Name)
	_, err = ParseString("<a><graphics><b></graphics></a>", Options{Skip: skip})
	require.ErrorContains(t, err, "</graphics> closes <b>")
}

// Each of these would take hours in a reader with a quadratic step.
func TestHostileInputTakesLinearTime(t *testing.T) {
	const n = 200_000
	for _, src := range []string{
		"<a>" + strings.Repeat("x<!---->", n) + "</a>",
		"<a " + strings.Repeat(`b="" `, n) + "/>",
		"<a>" + strings.Repeat("&", n) + "</a>",
		strings.Repeat("<a>", n),
		"<a>" + strings.Repeat("<b>\n</b>", n) + "</a>",
		"<!DOCTYPE " + strings.Repeat("<", n),
		"<a>" + strings.Repeat("]]><![CDATA[", n),
	} {
		_, _ = ParseString(src, Options{})
	}
}

func TestNamer(t *testing.T) {
	var n Namer
	for _, c := range []struct{ want, got string }{
		{"pick", "pick"}, {"pick", "pick_2"}, {"pick_2", "pick_2_2"}, {"pick", "pick_3"},
		{"a.b  c!", "a_b_c"}, {"7up", "_7up"}, {"-x", "_-x"}, {"__", "x"}, {"審査", "x_2"}, {"_id", "_id"},
	} {
		require.Equal(t, c.got, n.Name(c.want))
	}
	require.Equal(t, "sid-1", n.Name("審査", "sid-1"), "the first usable text is taken")
	require.Len(t, n.Name(strings.Repeat("y", 1000)), 100)
}

func TestReportIsBounded(t *testing.T) {
	var r Report
	for range MaxNotes + 7 {
		r.Add(Note{Code: Kept, Line: 3, Element: "e", Text: "t"})
	}
	require.Len(t, r.Notes, MaxNotes)
	require.Equal(t, MaxNotes, r.Count(Kept))
	require.Contains(t, r.String(), "3: kept: e: t\n")
	require.True(t, strings.HasSuffix(r.String(), "and 7 more\n"))
}

func FuzzParse(f *testing.F) {
	f.Add("<a b='c'>d<!-- -- --><e/>&lt;<![CDATA[x]]></a>")
	f.Add("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>")
	f.Add("\xff\xfe<\x00a\x00/\x00>\x00")
	f.Fuzz(func(t *testing.T, src string) {
		root, err := ParseString(src, Options{Limits: Limits{MaxDepth: 50}})
		if (root == nil) == (err == nil) {
			t.Fatalf("root %v, error %v", root, err)
		}
		if err == nil {
			walk(t, root)
		}
	})
}

func walk(t *testing.T, e *Element) {
	_, _, _ = e.ID(), e.Raw(), e.String()
	for c := range e.All() {
		if c.Line < e.Line {
			t.Fatalf("%v in line %d lies inside line %d", c, c.Line, e.Line)
		}
		walk(t, c)
	}
}
