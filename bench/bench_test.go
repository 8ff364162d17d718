package main

import (
	"database/sql"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/store"
)

func TestMain(m *testing.M) {
	if err := countFiles(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// Every commit is one sync with synchronous=FULL, and none with NORMAL: so the counter counts what it says.
func TestSyncsAreCounted(t *testing.T) {
	for mode, want := range map[string]int64{"FULL": 20, "NORMAL": 0} {
		db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "x.db")+
			"?_pragma=journal_mode(WAL)&_pragma=synchronous("+mode+")")
		require.NoError(t, err)
		db.SetMaxOpenConns(1)
		_, err = db.Exec("CREATE TABLE x (n INTEGER); INSERT INTO x VALUES (0)")
		require.NoError(t, err)
		before := files.syncs.Load()
		for n := range 20 {
			_, err := db.Exec("INSERT INTO x VALUES (?)", n)
			require.NoError(t, err)
		}
		require.Equal(t, want, files.syncs.Load()-before, mode)
		require.NoError(t, db.Close())
	}
}

// A filled file is one that Tasq might have written itself.
func TestFilledFileIsWhole(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, fill(dir, 300))
	e, err := open(file(dir), 1, oneTask)
	require.NoError(t, err)
	var counts []store.Count
	require.NoError(t, e.View(t.Context(), func(r store.Reader) (err error) {
		counts, err = r.Counts(t.Context())
		return err
	}))
	found := make(map[string]int64)
	for _, c := range counts {
		found[c.What+" "+c.State] += c.N
	}
	require.Equal(t, map[string]int64{"case completed": 300, "item completed": 300, "job done": 300}, found)
	entries := 0
	for _, err := range store.AllEntries(t.Context(), e, store.JournalFilter{}) {
		require.NoError(t, err)
		entries++
	}
	require.Equal(t, 2*300, entries, "each has the start, with the claim of the job, and the end")
	require.NoError(t, integrity.Check(t.Context(), e))
	require.NoError(t, e.Close())
}

// Every closed loop gets somewhere, and syncs as often as its promise asks for.
func TestLoops(t *testing.T) {
	for _, s := range rateSteps {
		if s.name == "river-drain" {
			continue // its size is fixed
		}
		t.Run(s.name, func(t *testing.T) {
			m, err := s.run(job{dir: t.TempDir(), quick: true, span: span{length: 200 * time.Millisecond}})
			require.NoError(t, err)
			require.Positive(t, m["p50"])
			require.LessOrEqual(t, m["p50"], m["p99"])
		})
	}
}

// Every system does a script: its steps, and then the wait for an event.
func TestFunctions(t *testing.T) {
	for _, s := range systems {
		t.Run(s.name, func(t *testing.T) {
			var there, awake atomic.Int64
			d, err := s.open(t.TempDir(), script{steps: 2, waits: true,
				there: func(int) { there.Add(1) }, awake: func(int) { awake.Add(1) }})
			require.NoError(t, err)
			ids, err := startAll(d, 3)
			require.NoError(t, err)
			require.EqualValues(t, 3, there.Load())
			require.Zero(t, awake.Load())
			for _, id := range ids {
				require.NoError(t, d.Send(id))
			}
			for _, id := range ids {
				require.NoError(t, d.Result(id))
			}
			require.EqualValues(t, 3, awake.Load())
			require.NoError(t, d.Close())
		})
	}
}

func TestSample(t *testing.T) {
	require.Equal(t, "2.00 [1.00-9.00]", sample{9, 1, 2}.String())
	require.Equal(t, "-", sample(nil).String())
	require.True(t, math.IsNaN(sample(nil).median()))
	require.Equal(t, sample{3, 0.5}, sample{6, 1, 7}.over(sample{2, 2}))
	require.Equal(t, "0.123", short(0.1234))
	require.Equal(t, "1235", short(1234.6))
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		t    target
		want string
	}{
		{target{reach: 0.5, stretch: 0.35, got: sample{0.34}}, "stretch reached"},
		{target{reach: 0.5, stretch: 0.35, got: sample{0.5}}, "reached"},
		{target{reach: 0.5, stretch: 0.35, got: sample{0.51}}, "SHORT"},
		{target{reach: 8000, stretch: 15000, more: true, got: sample{9000}}, "reached"},
		{target{reach: 0, got: sample{0}}, "reached"},
	} {
		require.Equal(t, c.want, c.t.verdict())
	}
}
