package check_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/check"
	"github.com/tasq-dev/tasq/cmd/tasq/internal/model"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/pnml"
	"github.com/tasq-dev/tasq/net/verify"
)

// example is the text of the example for a code.
func example(t *testing.T, code net.Code) (file, text string) {
	t.Helper()
	x, ok := check.Explain(code)
	require.True(t, ok)
	return x.File, x.Example
}

const sound = "workflow fine\nstart s\nend e\ntask t\nflow s -> t\nflow t -> e\n"

func read(name, text string) *check.File {
	return check.Read(name, strings.NewReader(text), check.Options{})
}

func TestTheWorstCounts(t *testing.T) {
	_, stuck := example(t, verify.NoOptionToComplete)
	_, unknown := example(t, verify.Undecided)
	_, illFormed := example(t, net.NoFlowOut)
	weak := "workflow weak\nstart s\nend e\ncondition l r\ntask c split=xor\ntask n\ntask a join=or\nflow s -> c\nflow c -> l, r\n" +
		"flow l -> n, a\nflow r -> n, a\nflow n -> a\nflow a -> e\n"
	tests := []struct {
		text string
		want check.Verdict
		exit int
	}{
		{sound, check.Sound, 0},
		{weak, check.WeaklySound, 0},
		{sound + weak, check.WeaklySound, 0},
		{unknown + sound, check.Unknown, 3},
		{unknown + stuck + sound, check.Unsound, 1},
		{stuck + illFormed, check.IllFormed, 2},
		{"wrkflow", check.Unreadable, 2},
	}
	for _, test := range tests {
		f := read("w.net", test.text)
		require.Equal(t, test.want, f.Verdict(), test.want.String())
		require.Equal(t, test.want, f.Outcome())
		require.Equal(t, test.exit, f.Outcome().ExitCode(), test.want.String())
	}
	require.Equal(t, "not well-formed", check.IllFormed.String())
}

func TestWhatIsAllowedDoesNotCount(t *testing.T) {
	_, text := example(t, verify.ImproperCompletion)
	def := read("claims.net", text).Nets[0]
	require.Equal(t, check.Unsound, def.Outcome())
	parsed, err := model.Read("claims.net", strings.NewReader(text))
	require.NoError(t, err)

	f := check.Definition(parsed.Nets[0].Definition, []net.Code{verify.ImproperCompletion}, check.Options{})
	require.Equal(t, check.Unsound, f.Verdict())
	require.Equal(t, check.Sound, f.Outcome())
	require.Equal(t, check.Allowed, f.Messages()[0].Level)
	require.Equal(t, check.Unsound, check.Definition(parsed.Nets[0].Definition, []net.Code{verify.DeadTask}, check.Options{}).Outcome())

	var b strings.Builder
	out := check.Text{W: &b}
	require.NoError(t, out.File(f))
	require.NoError(t, out.End())
	require.Contains(t, b.String(), "claims.net:9: allowed: improper-completion: a case can complete")
	require.Contains(t, b.String(), "claims.net:1: claims is unsound; it allows improper-completion\n")
	require.Contains(t, b.String(), "\n1 net: 1 unsound; 1 unsound as allowed; 2 warnings\n")
}

func TestWorkflowsOfAFileKnowEachOther(t *testing.T) {
	f := read("w.net", "workflow a\nstart s\nend e\ncomposite t of fine\nflow s -> t\nflow t -> e\n"+sound)
	require.Equal(t, check.Sound, f.Verdict())
	f = read("w.net", "workflow a\nstart s\nend e\ncomposite t of other\nflow s -> t\nflow t -> e\n"+sound)
	require.Equal(t, check.IllFormed, f.Nets[0].Verdict())
	require.Equal(t, net.UnknownName, f.Nets[0].Problems[0].Code)
	require.Equal(t, check.Sound, f.Nets[1].Verdict(), "what is wrong with one is not held against the other")
}

// A file that Tasq wrote is verified as what was written, with its names; others as the plain net that they hold.
func TestPNMLOfTasqKeepsItsGates(t *testing.T) {
	_, text := example(t, verify.NoOptionToComplete)
	parsed, err := model.Read("order.net", strings.NewReader(text))
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, pnml.Encode(&b, parsed.Nets[0].Definition))
	own := read("order.pnml", b.String())
	require.Equal(t, fmt.Sprint(codes(read("order.net", text))), fmt.Sprint(codes(own)))
	require.Equal(t, "decide to ship; ship; then ship->close 1", own.Nets[0].Report.Findings[1].Witness.String())
}

func codes(f *check.File) (list []string) {
	for _, m := range f.Messages() {
		list = append(list, m.Code)
	}
	return list
}

// What the reader of BPMN adds cannot be corrected by its author: the last or-join and the regions.
func TestNoWarningsAboutWhatTheReaderAdds(t *testing.T) {
	two := `<definitions><process id="p"><startEvent id="s"/><exclusiveGateway id="x"/><endEvent id="a"/><endEvent id="b"/>` +
		`<sequenceFlow id="f1" sourceRef="s" targetRef="x"/><sequenceFlow id="f2" sourceRef="x" targetRef="a"/>` +
		`<sequenceFlow id="f3" sourceRef="x" targetRef="b"/></process></definitions>`
	f := read("p.bpmn", two)
	require.Equal(t, check.Sound, f.Verdict())
	require.Empty(t, f.Messages())
}

// Thousands of or-joins in one knot are verified like any other net: no more is kept of them than fits.
func TestVeryManyOrJoins(t *testing.T) {
	var b strings.Builder
	b.WriteString("workflow w\nstart s\nend e\nflow s -> t0\nflow t2999 -> e\n")
	for i := range 3000 {
		fmt.Fprintf(&b, "task t%d join=or\n", i)
	}
	for i := range 2999 {
		fmt.Fprintf(&b, "flow t%d -> t%d, t%d, t%d\n", i, i+1, (i*7)%2999+1, (i*13)%2999+1)
	}
	f := read("w.net", b.String())
	require.Equal(t, check.Unsound, f.Verdict())
	require.Equal(t, verify.OrJoinCircle, f.Nets[0].Report.Warnings[0].Code)
}

// write fills a folder with files.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	}
}

func run(t *testing.T, arg string) (all []*check.File) {
	t.Helper()
	err := check.Run(context.Background(), check.Files(arg), check.Options{}, func(f *check.File) error {
		all = append(all, f)
		return nil
	})
	require.NoError(t, err)
	return all
}

func TestFoldersAndArchives(t *testing.T) {
	dir := t.TempDir()
	_, unsafe := example(t, verify.Unsafe)
	files := map[string]string{
		"a.net": sound, "b/b.pnml": unsafe, "b/LICENSE.txt": "As is.\n", "c.xml": "<svg/>", "d.json": "{}", "e.net": "workflow",
		"f.txt": "define\n" + sound + "----\nok\n", "g.txt": "start w\n----\nok\n",
	}
	write(t, dir, files)
	var lines []string
	for _, f := range run(t, dir) {
		name, _ := filepath.Rel(dir, f.Name)
		lines = append(lines, fmt.Sprintf("%s %s %v", filepath.ToSlash(name), f.Verdict(), f.Passed))
	}
	require.Equal(t, []string{"a.net sound false", "b/LICENSE.txt unreadable true", "b/b.pnml unsound false", "c.xml unreadable true",
		"e.net unreadable false", "f.txt sound false", "g.txt unreadable true"}, lines)

	for _, name := range []string{"models.tar.gz", "models.tgz", "models.tar"} {
		packed := filepath.Join(dir, name)
		pack(t, packed, files)
		all := run(t, packed)
		require.Len(t, all, len(lines))
		require.Equal(t, packed+"/a.net", all[0].Name)
		require.Equal(t, packed+"/a.net", all[0].Nets[0].Pos.File)
		require.Len(t, run(t, dir), len(lines)*2, "archives in a folder are read, too")
		require.NoError(t, os.Remove(packed))
	}
}

func TestDamagedArchives(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole.tar.gz")
	pack(t, whole, map[string]string{"a.net": sound, "b.net": strings.Repeat("# text\n", 50_000) + sound})
	data, err := os.ReadFile(whole)
	require.NoError(t, err)
	write(t, dir, map[string]string{"cut.tar.gz": string(data[:len(data)-20]), "none.tgz": "text", "no.tar": strings.Repeat("x", 1024)})
	for _, name := range []string{"cut.tar.gz", "none.tgz", "no.tar"} {
		all := run(t, filepath.Join(dir, name))
		last := all[len(all)-1]
		refusal := (*model.Error)(nil)
		require.ErrorAs(t, last.Err, &refusal)
		require.Equal(t, pnml.Malformed, refusal.Code)
		require.ErrorContains(t, last.Err, name+": malformed: the archive cannot be read: ")
	}
	missing := run(t, filepath.Join(dir, "missing.net"))
	require.ErrorIs(t, missing[0].Err, os.ErrNotExist)
	require.Equal(t, check.CodeUnreadable, missing[0].Messages()[0].Code)
}

// Files are checked concurrently, and reported in their order.
func TestOrderStays(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{}
	for i := range 100 {
		files[fmt.Sprintf("%03d.net", i)] = strings.Repeat("# text\n", (100-i)*50) + sound
	}
	write(t, dir, files)
	for i, f := range run(t, dir) {
		require.Equal(t, fmt.Sprintf("%03d.net", i), filepath.Base(f.Name))
	}
}

func TestRunStops(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.net": sound, "b.net": sound, "c.net": sound})
	enough := errors.New("enough")
	seen := 0
	err := check.Run(context.Background(), check.Files(dir), check.Options{}, func(*check.File) error { seen++; return enough })
	require.ErrorIs(t, err, enough)
	require.Equal(t, 1, seen)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err = check.Run(ctx, check.Files(dir), check.Options{}, func(*check.File) error { return nil })
	require.ErrorIs(t, err, context.Canceled)
}
