package sqlite_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/storetest"
	"github.com/tasq-dev/tasq/workitem"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// TestMain runs the child processes of the tests below: the test binary starts itself with an order in the environment.
func TestMain(m *testing.M) {
	if order := os.Getenv("TASQ_TEST_CHILD"); order != "" {
		child(order, os.Getenv("TASQ_TEST_FILE"))
		return
	}
	testsize.Parallel(8) // they wait for the disk
	os.Exit(m.Run())
}

func start(t *testing.T, order, path string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TASQ_TEST_CHILD="+order, "TASQ_TEST_FILE="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return cmd, bufio.NewScanner(out)
}

// crashed is the testing.TB of a child process: whatever fails ends the process with a message.
type crashed struct{ testing.TB }

func (crashed) Helper()        {}
func (crashed) Name() string   { return "child" }
func (crashed) Cleanup(func()) {}
func (crashed) FailNow()       { os.Exit(3) }
func (crashed) Errorf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "child: "+format+"\n", args...)
}

// child is a process that owns the file: "hold" until it is killed, or "cut:SEED:UPDATES:WHERE" to run a random history
// and to be killed at one of its commits. Each acknowledged entry is printed with a hash of what it holds.
func child(order, path string) {
	w := storetest.NewWorld(crashed{}, sqlite.File(path, sqlite.Window(7, 2*time.Millisecond)), uint64(os.Getpid()))
	w.Resume()
	if order == "hold" {
		w.Update(func(b *storetest.Batch) { b.Start(`1`) })
		fmt.Println("ready")
		select {}
	}
	parts := strings.Split(order, ":")
	seed, _ := strconv.ParseUint(parts[1], 10, 64)
	updates, _ := strconv.Atoi(parts[2])
	rng := rand.New(rand.NewPCG(seed, seed))
	for i := range 1 << 20 {
		before := len(w.Acknowledged)
		w.Update(func(b *storetest.Batch) {
			for range 1 + rng.IntN(4) {
				b.Random(rng)
			}
			if i == updates && parts[3] == "within" {
				die()
			}
		})
		for _, e := range w.Acknowledged[before:] {
			fmt.Println(line(e))
		}
		if i == updates && parts[3] == "after" {
			die()
		}
	}
}

func die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {}
}

func line(e *store.Entry) string {
	data, _ := json.Marshal(e.Changes)
	return fmt.Sprintf("%d %s %s %x", e.Seq, e.Root, e.Command, sha256.Sum256(data))
}

// A process is killed at every commit of a random history: within the transaction, right after the acknowledgement, or
// wherever it happens to be then. Every acknowledged entry is there, nothing but the last transaction can be there in
// addition, and the tables are the fold of the journal. The nightly form kills 600 processes, and the usual one six.
func TestKilledAtEveryCommit(t *testing.T) {
	t.Parallel()
	cuts, every := testsize.Pick(18, 18, 600), testsize.Pick(3, 1, 1)
	where := []string{"within", "after", "anywhere"} // each of them after each number of updates: a file has 18 cuts
	for f := 0; f < cuts; f += 18 {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("cut%d.db", f))
		acknowledged := make(map[int64]string)
		for cut := f; cut < f+18; cut += every {
			run(t, path, cut, where[(cut/every+cut/18)%3], acknowledged)
			w := storetest.NewWorld(t, sqlite.File(path), uint64(cut))
			w.Resume()
			w.Check()
			compare(t, w.Want.Entries, acknowledged, where[(cut/every+cut/18)%3] == "anywhere", cut)
			clear(acknowledged)
			for _, e := range w.Want.Entries { // what made it to the disk unacknowledged stays
				acknowledged[e.Seq] = line(e)
			}
			require.NoError(t, w.Store.(store.Killer).Kill())
		}
	}
}

// compare holds what was found against what was acknowledged. What was removed is gone; so may be, if a removal was cut
// off after its commit, all of one more case.
func compare(t *testing.T, found []*store.Entry, acknowledged map[int64]string, mayHaveMore bool, cut int) {
	t.Helper()
	last, removed, there := int64(0), make(map[string]bool), make(map[int64]bool)
	for seq, line := range acknowledged {
		last = max(last, seq)
		if fields := strings.Fields(line); strings.Contains(line, " case remove ") {
			removed[fields[1]] = true
		}
	}
	roots := make(map[string]bool)
	for _, e := range found {
		there[e.Seq], roots[e.Root.String()] = true, true
		require.False(t, removed[e.Root.String()], "cut %d: entry %d of a case that was removed", cut, e.Seq)
		if old, ok := acknowledged[e.Seq]; ok {
			require.Equal(t, old, line(e), "cut %d", cut)
			continue
		}
		require.True(t, mayHaveMore, "cut %d: entry %d was never acknowledged", cut, e.Seq)
		require.Greater(t, e.Seq, last, "cut %d", cut)
	}
	for seq, line := range acknowledged {
		root := strings.Fields(line)[1]
		if !there[seq] && !removed[root] {
			require.True(t, mayHaveMore && !roots[root], "cut %d: entry %d was acknowledged, and is gone", cut, seq)
		}
	}
}

// run starts a child, collects what it acknowledges, and sees it die.
func run(t *testing.T, path string, cut int, where string, acknowledged map[int64]string) {
	t.Helper()
	updates := cut % 18
	cmd, out := start(t, fmt.Sprintf("cut:%d:%d:%s", cut, updates, where), path)
	before := len(acknowledged)
	for out.Scan() {
		seq, err := strconv.ParseInt(strings.Fields(out.Text())[0], 10, 64)
		require.NoError(t, err)
		require.NotContains(t, acknowledged, seq, "acknowledged twice")
		acknowledged[seq] = out.Text()
		if where == "anywhere" && len(acknowledged)-before > updates {
			_ = cmd.Process.Kill()
		}
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal(), "the child was killed and did not fail")
}

func TestASecondProcessMayReadButNotOwn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cases.db")
	cmd, out := start(t, "hold", path)
	require.True(t, out.Scan())
	_, err := sqlite.File(path).Open(t.Context(), store.Options{})
	require.ErrorIs(t, err, store.ErrOwned)
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, strconv.Itoa(cmd.Process.Pid))

	s, err := sqlite.File(path).Open(t.Context(), store.Options{ReadOnly: true})
	require.NoError(t, err)
	require.NoError(t, s.View(t.Context(), func(r store.Reader) error {
		cases, err := r.Cases(t.Context(), store.CaseFilter{})
		require.Len(t, cases, 1)
		return err
	}))
	require.NoError(t, s.Close())

	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	w := storetest.NewWorld(t, sqlite.File(path), 2) // the lock died with its process
	w.Resume()
	w.Check()
	require.Len(t, w.Want.Entries, 1)
}

func TestTwoStoresOfOneProcessCannotOwnOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cases.db")
	w := storetest.NewWorld(t, sqlite.File(path), 1)
	_, err := sqlite.File(path).Open(t.Context(), store.Options{})
	require.ErrorIs(t, err, store.ErrOwned)
	w.Update(func(b *storetest.Batch) { b.Start(`1`) })
	w.Reopen()
	w.Check()

	m := sqlite.Memory()
	first, err := m.Open(t.Context(), store.Options{})
	require.NoError(t, err)
	_, err = m.Open(t.Context(), store.Options{})
	require.ErrorIs(t, err, store.ErrOwned)
	require.NoError(t, first.Close())
	second, err := m.Open(t.Context(), store.Options{})
	require.NoError(t, err)
	require.NoError(t, second.Close())
}

// The tables of a file may lag behind its journal while its owner runs. A reader lays the rest over them.
func TestAReaderIsExactWhileTheOwnerLags(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cases.db")
	w := storetest.NewWorld(t, sqlite.File(path, sqlite.Window(1<<20, time.Hour)), 1)
	reader, err := sqlite.File(path).Open(t.Context(), store.Options{ReadOnly: true})
	require.NoError(t, err)
	defer reader.Close()
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 40 {
		w.Update(func(b *storetest.Batch) { b.Random(rng); b.Random(rng) })
		if i%8 != 7 {
			continue
		}
		if i == 15 {
			require.NoError(t, w.Store.Idle(t.Context()))
		}
		require.NoError(t, reader.View(t.Context(), func(r store.Reader) error {
			w.Want.Check(t.Context(), t, r)
			var cases, tasks, events int // views and the user's own SQL see the same
			require.NoError(t, r.DB().QueryRowContext(t.Context(), "SELECT count(*) FROM cases").Scan(&cases))
			require.Equal(t, len(w.Want.Cases), cases)
			require.NoError(t, r.DB().QueryRowContext(t.Context(),
				"SELECT count(DISTINCT case_id) FROM tasks").Scan(&tasks))
			require.Equal(t, len(w.Want.Cases), tasks)
			require.NoError(t, r.DB().QueryRowContext(t.Context(), "SELECT count(*) FROM history").Scan(&events))
			want := 0
			for _, e := range w.Want.Entries {
				want += len(e.Changes)
			}
			require.Equal(t, want, events)
			require.NoError(t, r.DB().QueryRowContext(t.Context(), "SELECT count(*) FROM changes").Scan(&events))
			require.Equal(t, want, events)
			return nil
		}))
	}
	// Of two cases that are removed, one is in the tables, and one never was.
	done := func(b *storetest.Batch) workitem.CaseID {
		id := b.Start(`1`)
		for range 2 {
			b.Claim(id, id)
			b.Complete(id, id, `1`, false)
		}
		return id
	}
	var old workitem.CaseID
	w.Update(func(b *storetest.Batch) { old = done(b) })
	require.NoError(t, w.Store.Idle(t.Context()))
	w.Update(func(b *storetest.Batch) {
		b.Remove(old)
		b.Remove(done(b))
	})
	require.NoError(t, reader.View(t.Context(), func(r store.Reader) error {
		w.Want.Check(t.Context(), t, r)
		return nil
	}))
	w.Check()
}

func TestAFileThatIsNotOursIsLeftAlone(t *testing.T) {
	foreign := filepath.Join(t.TempDir(), "foreign.db")
	db, err := sql.Open("sqlite", foreign)
	require.NoError(t, err)
	_, err = db.Exec("CREATE TABLE precious (x); INSERT INTO precious VALUES (1)")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	text := filepath.Join(t.TempDir(), "text.db")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("no database, but a letter\n", 20)), 0o644))
	short := filepath.Join(t.TempDir(), "short.db")
	require.NoError(t, os.WriteFile(short, []byte("x"), 0o644))

	for _, path := range []string{foreign, text, short} {
		before, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, readOnly := range []bool{false, true} {
			_, err = sqlite.File(path).Open(t.Context(), store.Options{ReadOnly: readOnly})
			require.ErrorIs(t, err, store.ErrCorrupt, path)
			require.ErrorContains(t, err, path)
		}
		_, err = sqlite.Post(t.Context(), path, json.RawMessage(`1`))
		require.ErrorIs(t, err, store.ErrCorrupt, path)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, before, after)
		files, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		require.Len(t, files, 1, "nothing is left beside it")
	}
}

func TestAFileThatIsNotThere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none.db")
	_, err := sqlite.File(path).Open(t.Context(), store.Options{ReadOnly: true})
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = sqlite.Post(t.Context(), path, json.RawMessage(`1`))
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = sqlite.File(filepath.Join(t.TempDir(), "no", "folder", "x.db")).Open(t.Context(), store.Options{})
	require.ErrorContains(t, err, "folder")
	strange := filepath.Join(t.TempDir(), "ünï ?#%41&mode=ro.db")
	w := storetest.NewWorld(t, sqlite.File(strange), 1)
	w.Update(func(b *storetest.Batch) { b.Start(`1`) })
	w.Reopen()
	w.Check()
	require.FileExists(t, strange)
}

// edit changes a file with plain SQL. A store that has the file open may be writing: edit waits for it.
func edit(t *testing.T, path, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, err = db.Exec("PRAGMA busy_timeout = 20000; " + query)
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

// written makes a file with a random history in it.
func written(t *testing.T) (path string, w *storetest.World) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "cases.db")
	w = storetest.NewWorld(t, sqlite.File(path, sqlite.Window(1<<20, time.Hour)), 1)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 30 {
		w.Update(func(b *storetest.Batch) { b.Random(rng) })
	}
	return path, w
}

func TestANewerSchemaIsNotTouched(t *testing.T) {
	t.Parallel()
	path, w := written(t)
	require.NoError(t, w.Store.Close())
	edit(t, path, "INSERT INTO migrations VALUES (99, 'later', 'x', 0); UPDATE meta SET value = 99 WHERE name = 'oldest_program'")
	for _, readOnly := range []bool{false, true} {
		_, err := sqlite.File(path).Open(t.Context(), store.Options{ReadOnly: readOnly})
		require.ErrorIs(t, err, store.ErrNewer)
		require.ErrorContains(t, err, "version 99")
		require.ErrorContains(t, err, "this program knows up to")
	}
	_, err := sqlite.Post(t.Context(), path, json.RawMessage(`1`))
	require.ErrorIs(t, err, store.ErrNewer)
	edit(t, path, "DELETE FROM meta WHERE name = 'oldest_program'") // as in a file of an earlier program
	_, err = sqlite.File(path).Open(t.Context(), store.Options{})
	require.ErrorIs(t, err, store.ErrNewer)
	edit(t, path, "DELETE FROM migrations WHERE version = 99")
	w.Open()
	w.Check()
}

// A migration that only adds is no reason to refuse a file: the program that does not know it reads and writes it.
func TestANewerSchemaThatOnlyAddsIsUsed(t *testing.T) {
	t.Parallel()
	path, w := written(t)
	require.NoError(t, w.Store.Close())
	edit(t, path, "INSERT INTO migrations VALUES (99, 'later', 'x', 0); CREATE TABLE later (a)")
	s, err := sqlite.File(path).Open(t.Context(), store.Options{ReadOnly: true})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	w.Open()
	w.Check()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10 {
		w.Update(func(b *storetest.Batch) { b.Random(rng) })
	}
	w.Check()
	require.NoError(t, w.Store.Close())
}

func TestAnEditedMigrationIsFoundOut(t *testing.T) {
	t.Parallel()
	path, w := written(t)
	require.NoError(t, w.Store.Close())
	edit(t, path, "UPDATE migrations SET checksum = 'other'")
	_, err := sqlite.File(path).Open(t.Context(), store.Options{})
	require.ErrorIs(t, err, store.ErrCorrupt)
}

func TestAReaderDoesNotMigrate(t *testing.T) {
	t.Parallel()
	path, w := written(t)
	require.NoError(t, w.Store.Close())
	edit(t, path, "DELETE FROM migrations")
	_, err := sqlite.File(path).Open(t.Context(), store.Options{ReadOnly: true})
	require.ErrorIs(t, err, store.ErrReadOnly)
	require.ErrorIs(t, err, store.ErrOlder)
	require.ErrorContains(t, err, "version 0 of the schema, and this program reads version")
	var older *store.OlderError
	require.ErrorAs(t, err, &older)
	require.Equal(t, store.Migration{Version: 1, Name: "init"}, older.Pending[0])
}

// A damaged row or page is an error that names the file, in every operation, and never a panic.
func TestDamageIsReported(t *testing.T) {
	t.Parallel()
	journaled, w := written(t)
	require.NoError(t, w.Store.(store.Killer).Kill()) // the tables are empty: opening replays the journal
	for _, damage := range []string{
		"UPDATE journal SET events = '[{' WHERE seq = 20",
		"UPDATE journal SET events = '[{\"e\":\"case-begun\",\"case\":\"0197a3c4-0000-7000-8000-000000000000\"}]' " +
			"WHERE seq = 20",
		"UPDATE journal SET events = x'00ff' WHERE seq = 20",
		"UPDATE journal SET prev = 7 WHERE seq = 30",
		"UPDATE journal SET root = 'x' WHERE seq = 20",
		"DELETE FROM definitions",
		"UPDATE definitions SET net = '{}'",
		"DELETE FROM meta",
	} {
		t.Run(damage, func(t *testing.T) {
			t.Parallel()
			path := damaged(t, journaled, damage)
			_, err := sqlite.File(path).Open(t.Context(), store.Options{})
			require.ErrorIs(t, err, store.ErrCorrupt)
			require.ErrorContains(t, err, path)
		})
	}
	tabled, w := written(t)
	require.NoError(t, w.Store.Close())
	for _, damage := range []string{
		"UPDATE cases SET marking = '{\"nowhere\":1}'",
		"UPDATE cases SET state = 'asleep'",
		"UPDATE cases SET tasks = 7",
		"UPDATE cases SET created = 'today'",
		"UPDATE cases SET failure = '7'",
	} {
		t.Run(damage, func(t *testing.T) {
			t.Parallel()
			s, err := sqlite.File(damaged(t, tabled, damage)).Open(t.Context(), store.Options{})
			require.NoError(t, err)
			err = s.View(t.Context(), func(r store.Reader) error {
				_, err := r.Cases(t.Context(), store.CaseFilter{})
				return err
			})
			require.ErrorIs(t, err, store.ErrCorrupt)
			require.NoError(t, s.Close())
		})
	}
}

// damaged makes a copy of a file that no store has open, changes it by a statement, and returns its path.
func damaged(t *testing.T, intact, query string) string {
	t.Helper()
	require.NoFileExists(t, intact+"-wal")
	data, err := os.ReadFile(intact)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "cases.db")
	require.NoError(t, os.WriteFile(path, data, 0o644))
	edit(t, path, query)
	return path
}

// A page that was overwritten is an error that says so, or is not read. The usual form overwrites every fifth page.
func TestDamagedPagesAreReported(t *testing.T) {
	t.Parallel()
	path, w := written(t)
	require.NoError(t, w.Store.Close())
	intact, err := os.ReadFile(path)
	require.NoError(t, err)
	for page := 1; page < len(intact)/4096; page += testsize.Pick(5, 1, 1) {
		broken := append([]byte{}, intact...)
		for i := range 4096 {
			broken[page*4096+i] = 0xa5
		}
		require.NoError(t, os.WriteFile(path, broken, 0o644))
		s, err := sqlite.File(path).Open(t.Context(), store.Options{})
		if err == nil {
			err = s.View(t.Context(), func(r store.Reader) error {
				_, err1 := r.Cases(t.Context(), store.CaseFilter{})
				_, err2 := r.Items(t.Context(), store.ItemFilter{})
				_, err3 := r.Journal(t.Context(), store.JournalFilter{})
				for _, err := range []error{err1, err2, err3} {
					if err != nil {
						return err
					}
				}
				return nil
			})
			require.NoError(t, s.Close())
		}
		if err != nil {
			require.ErrorIs(t, err, store.ErrCorrupt, "page %d", page)
		}
	}
}

func TestTheAgeOfTheWindowBoundsWhatOthersMiss(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cases.db")
	w := storetest.NewWorld(t, sqlite.File(path, sqlite.Window(1<<20, time.Millisecond)), 1)
	w.Update(func(b *storetest.Batch) { b.Start(`1`) })
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for n := 0; n == 0; {
		require.NoError(t, db.QueryRowContext(ctx, "SELECT count(*) FROM cases").Scan(&n))
	}
}
