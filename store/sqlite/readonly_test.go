package sqlite_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/store/storetest"
	"github.com/tasq-dev/tasq/workitem"
)

// closed makes a file with some cases in it, and no owner.
func closed(t *testing.T) (string, *storetest.World) {
	t.Helper()
	path, w := written(t)
	require.NoError(t, w.Store.Close())
	return path, w
}

func reader(t *testing.T, path string) store.Store {
	t.Helper()
	s, err := sqlite.File(path).Open(t.Context(), store.Options{ReadOnly: true})
	require.NoError(t, err)
	return s
}

func look(t *testing.T, s store.Store, w *storetest.World) {
	t.Helper()
	require.NoError(t, s.View(t.Context(), func(r store.Reader) error {
		w.Want.Check(t.Context(), t, r)
		return nil
	}))
}

// lying is what lies in the folder of a file, and the file's own bytes.
func lying(t *testing.T, path string) (names []string, content string) {
	t.Helper()
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	for _, f := range files {
		names = append(names, f.Name())
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return names, string(data)
}

func TestReadersLeaveAClosedFileAsItWas(t *testing.T) {
	path, w := closed(t)
	names, content := lying(t, path)
	one := reader(t, path)
	two := reader(t, path) // the log of the first is there now, and empty
	look(t, one, w)
	look(t, two, w)
	require.NoError(t, one.Close())
	look(t, two, w)
	require.NoError(t, two.Close())
	after, same := lying(t, path)
	require.Equal(t, names, after)
	require.Equal(t, content, same)
}

// What an owner that died left in its log stays there for the next one.
func TestAReaderLeavesTheLogOfADeadOwner(t *testing.T) {
	path, _ := written(t) // its owner continues, and the copies are as after its death
	dead := filepath.Join(t.TempDir(), "dead.db")
	for _, end := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + end)
		require.NoError(t, err)
		require.NotEmpty(t, data)
		require.NoError(t, os.WriteFile(dead+end, data, 0o644))
	}
	_, content := lying(t, dead)
	s := reader(t, dead)
	require.NoError(t, s.View(t.Context(), func(r store.Reader) error {
		cases, err := r.Cases(t.Context(), store.CaseFilter{})
		require.NotEmpty(t, cases)
		return err
	}))
	require.NoError(t, s.Close())
	_, same := lying(t, dead)
	require.Equal(t, content, same)
	log, err := os.Stat(dead + "-wal")
	require.NoError(t, err)
	require.NotZero(t, log.Size())
}

// SQLite removes the log of a file that is missing or empty, and with it what was acknowledged.
func TestALogWithoutItsFileIsRefusedAndLeft(t *testing.T) {
	path, _ := written(t) // its owner continues, and the copy is as after its death
	log, err := os.ReadFile(path + "-wal")
	require.NoError(t, err)
	require.NotEmpty(t, log)
	for _, file := range []string{"empty", "missing"} {
		t.Run(file, func(t *testing.T) {
			lost := filepath.Join(t.TempDir(), "lost.db")
			if file == "empty" {
				require.NoError(t, os.WriteFile(lost, nil, 0o644))
			}
			require.NoError(t, os.WriteFile(lost+"-wal", log, 0o644))
			refused := func(err error) {
				t.Helper()
				require.ErrorIs(t, err, store.ErrCorrupt)
				require.ErrorContains(t, err, "put the file back beside its log or restore a backup; to begin anew, remove the log")
				same, err := os.ReadFile(lost + "-wal")
				require.NoError(t, err)
				require.Equal(t, log, same)
			}
			_, err := sqlite.File(lost).Open(t.Context(), store.Options{ReadOnly: true})
			refused(err)
			_, err = sqlite.File(lost).Open(t.Context(), store.Options{})
			refused(err)
			_, err = sqlite.Post(t.Context(), lost, json.RawMessage(`1`))
			refused(err)
		})
	}
}

func TestAReaderCannotWrite(t *testing.T) {
	t.Parallel()
	path, _ := closed(t)
	s := reader(t, path)
	defer s.Close()
	err := s.View(t.Context(), func(r store.Reader) error {
		_, err := r.DB().ExecContext(t.Context(), "DELETE FROM records")
		return err
	})
	require.ErrorIs(t, err, store.ErrReadOnly)
}

func TestAnEmptyFileHasNoCasesYet(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "empty.db")
	require.NoError(t, os.WriteFile(path, nil, 0o644))
	refused := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, store.ErrNotFound)
		require.NotErrorIs(t, err, store.ErrCorrupt)
		require.ErrorContains(t, err, path+": not found: the file is empty, so it has no cases yet")
	}
	_, err := sqlite.File(path).Open(t.Context(), store.Options{ReadOnly: true})
	refused(err)
	_, err = sqlite.Post(t.Context(), path, json.RawMessage(`1`))
	refused(err)
	refused(sqlite.Leave(t.Context(), path, json.RawMessage(`1`)))
	names, _ := lying(t, path)
	require.Equal(t, []string{"empty.db"}, names)

	w := storetest.NewWorld(t, sqlite.File(path), 1)
	w.Update(func(b *storetest.Batch) { b.Start(`1`) })
	w.Reopen()
	w.Check()

	// Its owner died between making the file and the first table.
	unborn := filepath.Join(t.TempDir(), "unborn.db")
	edit(t, unborn, "PRAGMA application_id=1413567313")
	_, err = sqlite.File(unborn).Open(t.Context(), store.Options{ReadOnly: true})
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestAnErrorSaysWhatIsDamagedAndWhatToDo(t *testing.T) {
	path, _ := closed(t)
	_, intact := lying(t, path)
	for name, broken := range map[string]string{
		"cut short":  intact[:len(intact)/2+100],
		"no header":  strings.Replace(intact, "SQLite format 3", "SQLite format 4", 1),
		"no schema":  intact[:100] + strings.Repeat("\xa5", 4000) + intact[4100:],
		"a bad row":  strings.ReplaceAll(intact, `"e":"case-begun"`, `"e":"case-eaten"`),
		"a bad net":  strings.ReplaceAll(intact, `"role":"start"`, `"role":"stars"`),
		"a bad page": intact[:4096] + strings.Repeat("\xa5", len(intact)-4096),
	} {
		require.NotEqual(t, intact, broken, name)
		require.NoError(t, os.WriteFile(path, []byte(broken), 0o644))
		s, err := sqlite.File(path).Open(t.Context(), store.Options{ReadOnly: true})
		if err == nil {
			err = s.View(t.Context(), func(r store.Reader) error {
				if _, err := r.Cases(t.Context(), store.CaseFilter{}); err != nil {
					return err
				}
				_, err := r.Journal(t.Context(), store.JournalFilter{})
				return err
			})
			require.NoError(t, s.Close(), name)
		}
		require.ErrorIs(t, err, store.ErrCorrupt, name)
		require.Equal(t, 1, strings.Count(err.Error(), path), "%s: %v", name, err)
		require.ErrorContains(t, err, "restore a backup", name)
		require.Equal(t, name == "no header", strings.Contains(err.Error(), "it is no SQLite file"), name)
		require.NotContains(t, err.Error(), "PRAGMA", name)
	}
}

// A file of which less than its header is left says so, to owners and readers: it looked like another program's.
func TestAFileCutOffInItsHeader(t *testing.T) {
	t.Parallel()
	path, _ := closed(t)
	_, intact := lying(t, path)
	require.NoError(t, os.Remove(path+".lock"))
	for _, length := range []int{1, 15, 16, 50, 71, 72, 99, 100, 4095} {
		require.NoError(t, os.WriteFile(path, []byte(intact[:length]), 0o644))
		for _, readOnly := range []bool{false, true} {
			_, err := sqlite.File(path).Open(t.Context(), store.Options{ReadOnly: readOnly})
			require.ErrorIs(t, err, store.ErrCorrupt)
			require.ErrorContains(t, err, "restore a backup")
			if length >= 24 || !readOnly { // SQLite takes less for no database
				require.NotErrorIs(t, err, store.ErrForeign, "%d %v", length, err)
			}
			if length < 100 && !readOnly {
				require.ErrorContains(t, err, "the file is cut off: it has only the first")
				require.NoFileExists(t, path+".lock")
			}
		}
		left, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, intact[:length], string(left))
	}
}

func TestErrorNamesOwnerOfFile(t *testing.T) {
	t.Parallel()
	path, w := written(t)
	_, err := sqlite.File(path).Open(t.Context(), store.Options{})
	require.ErrorIs(t, err, store.ErrOwned)
	require.ErrorContains(t, err, "this process has it open already")
	require.NotContains(t, err.Error(), "another process")

	link := filepath.Join(t.TempDir(), "link.db")
	require.NoError(t, os.Symlink(path, link))
	_, err = sqlite.File(link).Open(t.Context(), store.Options{})
	require.ErrorIs(t, err, store.ErrOwned, "a link is the same file, and has the same lock")
	require.NoError(t, w.Store.Close())
	linked, err := sqlite.File(link).Open(t.Context(), store.Options{})
	require.NoError(t, err)
	require.NoError(t, linked.Close())
	w.Open()
	w.Check()

	lost := filepath.Join(t.TempDir(), "lost.db")
	require.NoError(t, os.Symlink(lost+".gone", lost))
	_, err = sqlite.File(lost).Open(t.Context(), store.Options{})
	require.ErrorContains(t, err, "a link to a file that is not there")
}

func TestInvalidPathsAreNamed(t *testing.T) {
	folder := t.TempDir()
	ring := filepath.Join(folder, "ring")
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "here"), 0o755))
	require.NoError(t, os.Mkdir(ring, 0o755))
	require.NoError(t, os.Symlink("b.db", filepath.Join(ring, "a.db")))
	require.NoError(t, os.Symlink("a.db", filepath.Join(ring, "b.db")))
	require.NoError(t, os.WriteFile(filepath.Join(ring, "file"), nil, 0o644))
	t.Chdir(filepath.Join(folder, "here"))
	for path, want := range map[string]string{
		"":                         "the path of the database is empty",
		":memory:":                 "use sqlite.Memory()",
		"file:cases.db?mode=ro":    "is a URI: give the path alone",
		"mysql://db.example/shop":  "begins with mysql://, as the URL of a server",
		"host = db password=xyzzy": "begins with host=, as the connection string of a server",
		"user=ada password=xyzzy":  "begins with user=, as the connection string of a server",
		".":                        "it is a folder",
		strings.Repeat("x", 300):   "the path leads to no file (",
		"../ring/a.db":             "a.db: the path leads to no file (",
		"../ring/a.db/cases.db":    "the path leads to no file (",
		"../ring/file/cases.db":    "the path leads to no file (",
	} {
		for _, readOnly := range []bool{false, true} {
			_, err := sqlite.File(path).Open(t.Context(), store.Options{ReadOnly: readOnly})
			require.ErrorContains(t, err, want, path)
			require.NotContains(t, err.Error(), "xyzzy", "a password")
		}
	}
	if null, err := os.Stat(os.DevNull); err == nil && !null.Mode().IsRegular() {
		_, err = sqlite.File(os.DevNull).Open(t.Context(), store.Options{})
		require.ErrorContains(t, err, "no regular file")
	}
	names, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, names)
}

// A reader that stays open, as that of the pages or of a watched list, reads the file that has the name: SQLite would go on with the one that was opened.
func TestAReaderReadsTheFileThatHasTheName(t *testing.T) {
	path, w := closed(t)
	other, successor := closed(t)
	s := reader(t, path)
	look(t, s, w)
	require.NoError(t, os.Rename(path, path+".old"))
	err := s.View(t.Context(), func(store.Reader) error { return nil })
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, "the file was removed or moved while it was read")
	require.NoError(t, os.Rename(other, path))
	look(t, s, successor)
	require.NoError(t, os.Rename(path+".old", path))
	look(t, s, w)
	require.NoError(t, s.Close())
	require.NoFileExists(t, path+"-wal")
}

// A reader beside an owner lists also the incidents that the tables do not have yet, without those that ended meanwhile.
func TestAReaderBesideAnOwnerListsTheOpenIncidents(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cases.db")
	w := storetest.NewWorld(t, sqlite.File(path), 1)
	for range 2 {
		w.Update(func(b *storetest.Batch) {
			root := b.Start(`1`)
			b.Resolve(b.Incident(root, root, "", nil))
			b.Incident(root, root, "draft", &workitem.Failure{Code: "late", Message: "too late"})
		})
		look(t, reader(t, path), w)
		require.NoError(t, w.Store.Idle(t.Context()))
	}
}
