package admin_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// round is a workflow whose task follows itself, so that a case can have any number of entries.
const round = `
workflow round
  start begin
  end over
  task work join=xor split=xor
  flow begin -> work
  flow work -> work, over
`

// engineOf returns an engine with workflows of net notation.
func engineOf(t testing.TB, text string) *enginetest.Engine {
	t.Helper()
	parsed, err := scenario.ParseNotation(net.Pos{}, text)
	require.NoError(t, err)
	defs, problems, err := scenario.Compile(parsed, nil)
	require.NoError(t, err)
	require.Empty(t, problems)
	var flows []engine.Workflow
	for _, d := range defs {
		flows = append(flows, d)
	}
	return enginetest.New(t, flows...)
}

// newRound is an engine with a case that has so many entries of its journal.
func newRound(t testing.TB, entries int) (*enginetest.Engine, workitem.CaseID) {
	t.Helper()
	e := engineOf(t, round)
	started, err := e.Do(t.Context(), workflow.Start("round", []byte(`{}`)))
	require.NoError(t, err)
	for n := 1; n < entries; n++ {
		require.NoError(t, e.Update(t.Context(), func(tx *engine.Tx) error { return oneEntry(tx, started.Case, n) }))
	}
	return e, started.Case
}

// oneEntry starts or completes the item of the case; the n-th by a user of that number.
func oneEntry(tx *engine.Tx, id workitem.CaseID, n int) error {
	c, err := tx.Case(context.Background(), id)
	if err != nil {
		return err
	}
	for it := range c.Items.All() {
		act := workflow.Act(it.ID, workitem.Start, nil, workflow.By(fmt.Sprint("user-", n)))
		if it.State == workitem.Started {
			act = workflow.Act(it.ID, workitem.Complete, []byte(`{}`), workflow.Route("work"), workflow.By(fmt.Sprint("user-", n)))
		}
		if !it.State.Final() {
			_, err = tx.Do(context.Background(), act)
			return err
		}
	}
	return fmt.Errorf("case %s has no open item", id)
}

// counting is an engine whose readers count the entries of the journal that requests read.
type counting struct {
	*engine.Engine
	entries  int
	prepared chan error // how each view that no request asked for ended; nil does not say
}

type ofRequest struct{}

// get asks for a page.
func (c *counting) get(h http.Handler, path string) *httptest.ResponseRecorder {
	c.entries = 0
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(context.WithValue(context.Background(), ofRequest{}, true), http.MethodGet, path, nil))
	return w
}

func (c *counting) View(ctx context.Context, f func(store.Reader) error) error {
	if ctx.Value(ofRequest{}) != nil {
		return c.Engine.View(ctx, func(r store.Reader) error { return f(countingReader{r, c}) })
	}
	err := c.Engine.View(ctx, f)
	if c.prepared != nil {
		c.prepared <- err
	}
	return err
}

type countingReader struct {
	store.Reader
	c *counting
}

func (r countingReader) Journal(ctx context.Context, f store.JournalFilter) ([]*store.Entry, error) {
	entries, err := r.Reader.Journal(ctx, f)
	r.c.entries += len(entries)
	return entries, err
}

// The page of a case reads a part of a long history; each entry of it can be reached, and its state is that of the replay.
func TestALongHistoryIsShownInParts(t *testing.T) {
	e, id := newRound(t, 1300)
	b := &counting{Engine: e.Engine}
	h := admin.Handler(b, admin.Config{Access: admin.ReadOnly})
	page := func(query string) string {
		w := b.get(h, "/cases/"+id.String()+query)
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		return w.Body.String()
	}
	link := func(body, label string) string {
		found := regexp.MustCompile(`href="/cases/[^"?]*([^"]*)"[^>]* aria-label="` + label + `"`).FindStringSubmatch(body)
		require.NotNil(t, found, "no link %q", label)
		return strings.ReplaceAll(found[1], "&amp;", "&")
	}
	for _, tab := range []string{"", "?tab=history"} {
		body := page(tab)
		require.Contains(t, body, "now · entry 500 of a part of 500")
		require.LessOrEqual(t, b.entries, 600, "the page reads more than a part")
		require.Contains(t, body, "500&#43;")
	}
	require.Contains(t, page("?tab=history"), "user-1299")
	require.NotContains(t, page(""), "to now")

	earlier := page(link(page(""), "Earlier part of the history"))
	require.Contains(t, earlier, "entry 250 of a part of 500")
	require.Contains(t, earlier, "user-799", "the entry before the newest 500")
	require.Contains(t, earlier, "to now")
	before := page(link(earlier, "One entry back"))
	require.Contains(t, before, "user-798")
	require.LessOrEqual(t, b.entries, 1400, "the state was replayed from the beginning again")
	require.Contains(t, page(link(before, "One entry on")), "user-799")

	entries := journal(t, e, id)
	pinned := fmt.Sprintf("?entry=3&part=%d", entries[599].Seq) // what the slider asks for without a script
	require.Contains(t, page(pinned), "user-102")
	require.Contains(t, page("?at="+fmt.Sprint(entries[0].Seq)), "entry 1 of a part of")
	other, err := e.Do(t.Context(), workflow.Start("round", []byte(`{}`)))
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, get(h, "/cases/"+other.Case.String()+"?part=5&entry=1").Code, "that was before the case")

	// The pages of the history lead through all of it, and name items that were created before the part.
	seen, next := 0, "?tab=history"
	for next != "" {
		body := page(next)
		seen += strings.Count(body, `class="seq"`)
		require.NotRegexp(t, `item [0-9a-f]{8}-`, body[strings.Index(body, `class="history"`):])
		found := regexp.MustCompile(`rel="next" href="/cases/[^"?]*([^"]*)">more`).FindStringSubmatch(body)
		next = ""
		if found != nil {
			next = strings.ReplaceAll(found[1], "&amp;", "&")
		}
	}
	require.Equal(t, 1300, seen)
}

// Once a long history was opened, the first look at a state far back replays a short way.
func TestTheFirstLookAtThePastIsPrepared(t *testing.T) {
	e, id := newRound(t, 1300)
	b := &counting{Engine: e.Engine, prepared: make(chan error, 8)}
	h := admin.Handler(b, admin.Config{Access: admin.ReadOnly})
	page := "/cases/" + id.String()
	for range 3 {
		require.Equal(t, http.StatusOK, b.get(h, page).Code)
	}
	select {
	case err := <-b.prepared:
		require.ErrorContains(t, err, "all is read")
	case <-time.After(browserBound):
		t.Fatal("nothing is prepared")
	}
	require.Empty(t, b.prepared, "it is prepared once")
	entries := journal(t, e, id)
	w := b.get(h, fmt.Sprintf("%s?at=%d", page, entries[600].Seq))
	require.Contains(t, w.Body.String(), "user-600")
	require.LessOrEqual(t, b.entries, 501+501+252+250, "two parts of the history and what lies between two remembered states")
	tree, err := store.At(t.Context(), e, id, store.Moment{Seq: entries[600].Seq})
	require.NoError(t, err)
	for it := range tree.Case(id).Items.All() {
		require.Contains(t, w.Body.String(), it.Label())
	}
	b.get(h, "/api/v1"+page+fmt.Sprintf("?at=%d", entries[601].Seq))
	require.LessOrEqual(t, b.entries, 250, "the API remembers the same states")
}

// A past state is the same whatever was looked at before.
func TestAPastStateIsThatOfTheReplay(t *testing.T) {
	e, id := newRound(t, 700)
	h := admin.Handler(e.Engine, admin.Config{Access: admin.ReadOnly})
	entries := journal(t, e, id)
	for _, n := range []int{690, 20, 255, 251, 250, 249, 510, 500, 400, 690} {
		tree, err := store.At(t.Context(), e, id, store.Moment{Seq: entries[n].Seq})
		require.NoError(t, err)
		for it := range tree.Case(id).Items.All() {
			require.Contains(t, get(h, fmt.Sprintf("/cases/%s?at=%d", id, entries[n].Seq)).Body.String(), it.Label(), "after entry %d", n)
		}
	}
}

// A part of a long history is the same however it is asked for, and a past state is that of the replay, while the history grows.
func TestPartsOfALongHistoryAreThoseOfTheWhole(t *testing.T) {
	e, id := newRound(t, 1500)
	h := admin.Handler(e.Engine, admin.Config{Access: admin.ReadOnly})
	all := journal(t, e, id)
	rapid.Check(t, func(rt *rapid.T) {
		if rapid.IntRange(0, 9).Draw(rt, "more") == 0 {
			require.NoError(rt, e.Update(t.Context(), func(tx *engine.Tx) error { return oneEntry(tx, id, len(all)) }))
			all = append(all, journal(t, e, id)[len(all):]...)
		}
		from, limit := rapid.IntRange(0, len(all)-1).Draw(rt, "from"), rapid.IntRange(1, 600).Draw(rt, "limit")
		var part []*store.Entry
		require.NoError(rt, e.View(t.Context(), func(r store.Reader) (err error) {
			part, err = r.Journal(t.Context(), store.JournalFilter{Root: id, After: all[from].Seq, Limit: limit})
			return err
		}))
		require.Equal(rt, seqsOf(all[from+1:min(from+1+limit, len(all))]), seqsOf(part))
		tree, err := store.At(t.Context(), e, id, store.Moment{Seq: all[from].Seq})
		require.NoError(rt, err)
		page := get(h, fmt.Sprintf("/cases/%s?at=%d", id, all[from].Seq)).Body.String()
		for it := range tree.Case(id).Items.All() {
			require.Contains(rt, page, it.Label(), "after entry %d", from)
		}
	})
}

func seqsOf(entries []*store.Entry) (seqs []int64) {
	for _, e := range entries {
		seqs = append(seqs, e.Seq)
	}
	return seqs
}

// BenchmarkAPastState is the page of a state in the middle of 20,000 entries, looked at again.
func BenchmarkAPastState(b *testing.B) {
	e, id := newRound(b, 20_000)
	h := admin.Handler(e.Engine, admin.Config{Access: admin.ReadOnly})
	middle := fmt.Sprintf("/cases/%s?at=%d", id, journal(b, e, id)[10_000].Seq)
	require.Equal(b, http.StatusOK, get(h, middle).Code)
	for b.Loop() {
		get(h, middle)
	}
}

func journal(t testing.TB, e *enginetest.Engine, root workitem.CaseID) (all []*store.Entry) {
	t.Helper()
	for entry, err := range store.AllEntries(t.Context(), e, store.JournalFilter{Root: root}) {
		require.NoError(t, err)
		all = append(all, entry)
	}
	return all
}

// A command that opens thousands of work items has an entry with as many changes, and its task as many waits: the tabs of the case list the first hundred, and
// say that there are more.
func TestAnEntryWithManyChanges(t *testing.T) {
	s := strand(t, "many", compiled(t, "workflow many\n start s\n end e\n task a items=3000\n flow s -> a\n flow a -> e\n")...)
	h := s.o.handler(admin.Config{Access: admin.ReadOnly})
	for tab, want := range map[string]string{"history": "more; tasq history " + s.id.String() + " has all", "way": "and more; the tab items has all work items"} {
		w := get(h, "/cases/"+s.id.String()+"?tab="+tab)
		require.Equal(t, http.StatusOK, w.Code)
		require.Contains(t, w.Body.String(), "a.1.90", tab)
		require.Contains(t, w.Body.String(), want, tab)
		require.Less(t, w.Body.Len(), 50_000, tab)
	}
}
