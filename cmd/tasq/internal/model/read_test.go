package model_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/model"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/pnml"
)

const (
	notation = "# a comment first\nworkflow w\nstart i\nend o\ntask t\nflow i -> t\nflow t -> o\n"
	text     = "define\n" + "workflow w\nstart i\nend o\ntask old\n----\nok\n\n" +
		"define\nworkflow w\nstart i\nend o\ntask t\nflow i -> t\nflow t -> o\n----\nok\n\n" +
		"define\nworkflow\n----\nerror: syntax\n"
	pnmlText = `<pnml><net id="w" type="x"><place id="i"><initialMarking><text>1</text></initialMarking></place>` +
		`<place id="o"/><transition id="t"><name><text>Do it</text></name></transition>` +
		`<arc id="a" source="i" target="t"/><arc id="b" source="t" target="o"/></net></pnml>`
	bpmnText = `<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL"><bpmn:process id="w">` +
		`<bpmn:startEvent id="i"/><bpmn:task id="t" name="t"/><bpmn:endEvent id="o"/>` +
		`<bpmn:sequenceFlow id="f" sourceRef="i" targetRef="t"/><bpmn:sequenceFlow id="g" sourceRef="t" targetRef="o"/>` +
		`</bpmn:process></bpmn:definitions>`
)

func read(t *testing.T, name, text string) *model.File {
	t.Helper()
	f, err := model.Read(name, strings.NewReader(text))
	require.NoError(t, err)
	require.Equal(t, name, f.Name)
	return f
}

func TestTheContentSaysWhatItIs(t *testing.T) {
	yawlText, err := os.ReadFile("../../../../net/yawl/testdata/review.yawl")
	require.NoError(t, err)
	tests := map[string]struct {
		file, text string
		want       model.Format
	}{
		"notation":             {"w.net", notation, model.Notation},
		"notation, no ending":  {"w", notation, model.Notation},
		"notation with a mark": {"w", "\uFEFF" + notation, model.Notation},
		"notation as .xml":     {"w.xml", notation, model.Notation},
		"scenario":             {"w.txt", text, model.Scenario},
		"scenario, no ending":  {"w", text, model.Scenario},
		"pnml":                 {"w.pnml", pnmlText, model.PNML},
		"pnml as .net":         {"w.net", pnmlText, model.PNML},
		"pnml, prolog":         {"w", "<?xml version=\"1.0\"?>\n<!-- a > b -->\n" + pnmlText, model.PNML},
		"pnml, document type":  {"w", "<!DOCTYPE pnml [<!ELEMENT pnml (net)>]>" + pnmlText, model.PNML},
		"pnml, long licence":   {"w", "<!--" + strings.Repeat("as is ", 20_000) + "-->" + pnmlText, model.PNML},
		"pnml in UTF-16":       {"w", wide(pnmlText), model.PNML},
		"bpmn":                 {"w.xml", bpmnText, model.BPMN},
		"yawl":                 {"w.xml", string(yawlText), model.YAWL},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := read(t, test.file, test.text)
			require.Equal(t, test.want, f.Format, f.Format.String())
			require.NotEmpty(t, f.Nets)
			require.Empty(t, f.Nets[0].Problems())
			require.Equal(t, f.Nets[0].Name, model.Names(f.All())[0])
			require.Equal(t, test.file, f.Definitions()[0].Pos.File)
		})
	}
}

// wide is a text in UTF-16 with its mark.
func wide(text string) string {
	b := []byte{0xFF, 0xFE}
	for _, u := range utf16.Encode([]rune(text)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

func TestScenarioCountsAsDefinedLast(t *testing.T) {
	f := read(t, "w.txt", text)
	require.Equal(t, []string{"w"}, model.Names(f.All()))
	require.Equal(t, []net.Task{{Name: "t", Pos: net.Pos{File: "w.txt", Line: 13}}}, f.Nets[0].Definition.Tasks)
}

func TestFindANet(t *testing.T) {
	f := read(t, "w.net", notation+"workflow v\nstart i\nend o\ncomposite c of w\nflow i -> c\nflow c -> o\ncancel x: c\n")
	require.Equal(t, []string{"w", "v"}, model.Names(f.All()))
	require.False(t, model.Find(f.All(), "w").Root, "v runs it")
	require.True(t, model.Find(f.All(), "v").Root)
	require.Nil(t, model.Find(f.All(), "u"))
	require.Nil(t, model.Find(f.All(), ""))
	require.Equal(t, net.UnknownName, model.Find(f.All(), "v").Problems()[0].Code, "the owner of a region stands in no definition")

	f = read(t, "w.pnml", strings.Replace(pnmlText, `type="x">`, `type="x"><name><text>Do all</text></name>`, 1))
	require.Equal(t, "Do_all", model.Find(f.All(), "Do all").Name)
	require.Equal(t, map[string]string{"t": "Do it"}, f.Nets[0].Labels)
	require.NotNil(t, f.Nets[0].Petri)
}

// A net of PNML that no workflow can be made of is there nevertheless, for verification works on the plain net.
func TestAPlainNet(t *testing.T) {
	two := `target="o"><inscription><text>2</text></inscription></arc>`
	f := read(t, "w.pnml", strings.Replace(pnmlText, `target="o"/>`, two, 1))
	require.Nil(t, f.Nets[0].Definition)
	require.Equal(t, "w", f.Nets[0].Name)
	require.Empty(t, f.Definitions())
	require.Empty(t, f.Nets[0].Problems())
	require.Contains(t, f.Report.String(), "plain-only")
}

func TestWhatIsRefused(t *testing.T) {
	tests := map[string]struct{ file, text, want string }{
		"empty":         {"w", " \n", `w: empty: the file is empty`},
		"empty text":    {"w.net", " \n", `w.net:1: there is no workflow here`},
		"binary":        {"w.png", "\x89PNG\r\n\x1a\n\x00", `w.png: wrong-format: this is neither text nor XML`},
		"Latin-1":       {"w.net", "workflow caf\xe9", `w.net:1: wrong-format: the text is not in UTF-8`},
		"zeros":         {"w", "workflow w\x00", `w: wrong-format: this is neither`},
		"other text":    {"go.mod", "module x\n", `go.mod: wrong-format: this is no model: a text in net notation has`},
		"bad notation":  {"w.net", "wrkflow w", `w.net:1: unknown statement "wrkflow"; did you mean "workflow"?`},
		"bad scenario":  {"w.txt", "define", `w.txt:1: `},
		"bad define":    {"w.txt", "define\nworkflow w\n  tusk A\n----\nok\n", `w.txt:3: unknown statement "tusk"; did you mean "task"?`},
		"unrecorded":    {"w.txt", "define\nworkflow w\n  tusk A\n----\n", `w.txt:3: unknown statement "tusk"; did you mean "task"?`},
		"shown refusal": {"w.txt", "define\nworkflow w\n  tusk A\n----\nerror: syntax\n", `w.txt: empty: the scenario defines no workflow`},
		"no definition": {"w.txt", "start w\n----\nok\n", `w.txt: empty: the scenario defines no workflow`},
		"other XML":     {"w.svg", "<svg:svg/>", `w.svg: wrong-format: the root element is "svg"; that of a PNML`},
		"long root":     {"w", "<" + strings.Repeat("a", 500) + ">", `"` + strings.Repeat("a", 40) + `..."`},
		"no root":       {"w", "<?xml version='1.0'?>", `w: wrong-format: this is XML without an element`},
		"open comment":  {"w", "<!-- ", `w: wrong-format: this is XML without an element`},
		"open type":     {"w", "<!DOCTYPE a [ >", `w: wrong-format: this is XML without an element`},
		"cut short":     {"w", pnmlText[:100], `w:1: malformed: `},
		"no archive":    {"w", "PK\x03\x04", `w: malformed: it is a zip archive that cannot be unpacked`},
		"empty process": {"w", "<definitions/>", `w:1: empty: `},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := model.Read(test.file, strings.NewReader(test.text))
			require.Nil(t, f)
			require.ErrorContains(t, err, test.want)
			refusal, syntax := (*model.Error)(nil), scenario.SyntaxErrors(nil)
			require.True(t, errors.As(err, &refusal) || errors.As(err, &syntax))
		})
	}
}

// endless is a file without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '#'
	}
	return len(p), nil
}

func TestSizesAreBounded(t *testing.T) {
	_, err := model.Read("w", endless{})
	refusal := (*model.Error)(nil)
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, pnml.TooLarge, refusal.Code)
}

func TestErrorsOfTheReaderStay(t *testing.T) {
	broken := errors.New("the line is dead")
	_, err := model.Read("w", iotest.ErrReader(broken))
	require.ErrorIs(t, err, broken)

	_, err = model.Open(filepath.Join(t.TempDir(), "missing.net"))
	require.ErrorIs(t, err, os.ErrNotExist)

	path := filepath.Join(t.TempDir(), "w")
	require.NoError(t, os.WriteFile(path, []byte(pnmlText), 0o600))
	f, err := model.Open(path)
	require.NoError(t, err)
	require.Equal(t, model.PNML, f.Format)
}

// Whatever the bytes, a file is read or refused.
func FuzzRead(f *testing.F) {
	f.Add(notation)
	f.Add(text)
	f.Add(pnmlText)
	f.Add(bpmnText)
	f.Fuzz(func(t *testing.T, text string) {
		file, err := model.Read("fuzz", strings.NewReader(text))
		if err != nil {
			require.Nil(t, file)
			return
		}
		require.NotEmpty(t, file.Nets)
		for _, n := range file.Nets {
			require.True(t, n.Definition != nil || n.Petri != nil)
			n.Problems()
		}
	})
}
