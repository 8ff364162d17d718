package domain_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"
	"pgregory.net/rapid"

	"github.com/tasq-dev/tasq/domain"
)

// memory opens an empty database with one connection, so that a connection which is not returned blocks the test.
func memory(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	for range 2 { // it may be there already
		_, err = db.Exec(domain.Schema)
		require.NoError(t, err)
	}
	return db
}

var people = domain.Collection[string, Address]{Name: "people"}

func collect[K comparable, V any](t *testing.T, list iter.Seq2[domain.Entry[K, V], error]) (keys []K) {
	t.Helper()
	for e, err := range list {
		require.NoError(t, err)
		keys = append(keys, e.Key)
	}
	return keys
}

func TestARecordsLife(t *testing.T) {
	ctx, db := t.Context(), memory(t)
	_, err := people.Get(ctx, db, "ann")
	require.ErrorIs(t, err, domain.ErrNotFound)
	require.EqualError(t, err, `get people "ann": not found`)
	has, err := people.Has(ctx, db, "ann")
	require.NoError(t, err)
	require.False(t, has)
	require.ErrorIs(t, people.Update(ctx, db, "ann", func(*Address) error { return nil }), domain.ErrNotFound)

	require.NoError(t, people.Put(ctx, db, "ann", Address{City: "Kiel"}))
	require.NoError(t, people.Put(ctx, db, "ann", Address{City: "Köln"}))
	require.NoError(t, people.Put(ctx, db, "bob", Address{City: "Bonn"}))
	got, err := people.Get(ctx, db, "ann")
	require.NoError(t, err)
	require.Equal(t, Address{City: "Köln"}, got)
	has, err = people.Has(ctx, db, "ann")
	require.NoError(t, err)
	require.True(t, has)
	n, err := people.Count(ctx, db)
	require.NoError(t, err)
	require.Equal(t, 2, n)

	require.NoError(t, people.Update(ctx, db, "ann", func(a *Address) error {
		a.Zip = "50667"
		return nil
	}))
	got, err = people.Get(ctx, db, "ann")
	require.NoError(t, err)
	require.Equal(t, Address{City: "Köln", Zip: "50667"}, got)

	require.NoError(t, people.Delete(ctx, db, "ann"))
	require.NoError(t, people.Delete(ctx, db, "ann"), "twice is no error")
	require.Equal(t, []string{"bob"}, collect(t, people.All(ctx, db)))
}

func TestCollectionsAreApart(t *testing.T) {
	ctx, db := t.Context(), memory(t)
	others := domain.Collection[string, int]{Name: "people.age"}
	require.NoError(t, people.Put(ctx, db, "ann", Address{City: "Kiel"}))
	require.NoError(t, others.Put(ctx, db, "ann", 42))
	require.NoError(t, others.Put(ctx, db, "bob", 7))
	require.Equal(t, []string{"ann"}, collect(t, people.All(ctx, db)))
	age, err := others.Get(ctx, db, "ann")
	require.NoError(t, err)
	require.Equal(t, 42, age)
}

func TestRecordsBelongToTheTransaction(t *testing.T) {
	ctx, db := t.Context(), memory(t)
	require.NoError(t, people.Put(ctx, db, "ann", Address{City: "Kiel"}))
	write := func(tx *sql.Tx) {
		require.NoError(t, people.Put(ctx, tx, "bob", Address{City: "Bonn"}))
		require.NoError(t, people.Update(ctx, tx, "ann", func(a *Address) error { a.City = "Rom"; return nil }))
		require.Equal(t, []string{"ann", "bob"}, collect(t, people.All(ctx, tx)), "the transaction sees itself")
		require.NoError(t, people.Delete(ctx, tx, "ann"))
	}

	tx, err := db.BeginTx(ctx, nil)
	require.NoError(t, err)
	write(tx)
	require.NoError(t, tx.Rollback())
	require.Equal(t, []string{"ann"}, collect(t, people.All(ctx, db)), "nothing is left of it")
	got, err := people.Get(ctx, db, "ann")
	require.NoError(t, err)
	require.Equal(t, "Kiel", got.City)

	tx, err = db.BeginTx(ctx, nil)
	require.NoError(t, err)
	write(tx)
	require.NoError(t, tx.Commit())
	require.Equal(t, []string{"bob"}, collect(t, people.All(ctx, db)))
}

func TestInvalidRecordIsNotWritten(t *testing.T) {
	ctx, db := t.Context(), memory(t)
	err := people.Put(ctx, db, "ann", Address{Zip: "1"})
	require.Equal(t, []string{"city: required", "zip: len=5"}, broken(t, err))
	require.EqualError(t, err, `put people "ann": invalid domain_test.Address: city: required; zip: len=5`)

	require.NoError(t, people.Put(ctx, db, "ann", Address{City: "Kiel"}))
	err = people.Update(ctx, db, "ann", func(a *Address) error { a.City = ""; return nil })
	require.Equal(t, []string{"city: required"}, broken(t, err))
	why := errors.New("the customer has moved")
	err = people.Update(ctx, db, "ann", func(a *Address) error { a.City = "Rom"; return why })
	require.ErrorIs(t, err, why)

	texts := domain.Collection[int, string]{Name: "texts"}
	err = texts.Put(ctx, db, 1, strings.Repeat("x", domain.MaxSize))
	require.ErrorIs(t, err, domain.ErrTooLarge)
	require.ErrorContains(t, err, `put texts "1": a value of type string is too large: 1048578 bytes`)
	fits := strings.Repeat("ü", domain.MaxSize/2-1)
	require.NoError(t, texts.Put(ctx, db, 1, fits))
	back, err := texts.Get(ctx, db, 1)
	require.NoError(t, err)
	require.Equal(t, fits, back)

	got, err := people.Get(ctx, db, "ann")
	require.NoError(t, err)
	require.Equal(t, Address{City: "Kiel"}, got)
}

func TestRecordsOfAnOlderProgramAreReadAndUpgraded(t *testing.T) {
	ctx, db := t.Context(), memory(t)
	old := domain.Collection[string, map[string]any]{Name: "people"}
	require.NoError(t, old.Put(ctx, db, "ann", map[string]any{"zip": "1", "phone": "0431"}))

	got, err := people.Get(ctx, db, "ann")
	require.NoError(t, err)
	require.Equal(t, Address{Zip: "1"}, got)
	require.NoError(t, people.Update(ctx, db, "ann", func(a *Address) error {
		a.City, a.Zip = "Kiel", "24103"
		return nil
	}))

	require.NoError(t, old.Put(ctx, db, "bob", map[string]any{"city": 7}))
	_, err = people.Get(ctx, db, "bob")
	require.ErrorContains(t, err, `get people "bob": read stored domain_test.Address: json: cannot unmarshal number`)
	var last error
	for _, last = range people.All(ctx, db) {
	}
	require.ErrorContains(t, last, `list people: key "bob": read stored domain_test.Address`)
}

func TestNamesOfCollections(t *testing.T) {
	ctx, db := t.Context(), memory(t)
	for _, name := range []string{"", "a b", "ä", "1st", "a/b", "a\x00", "drop'table", strings.Repeat("x", 65)} {
		c := domain.Collection[string, int]{Name: name}
		_, err := c.Get(ctx, db, "k")
		require.Error(t, err, name)
		require.Error(t, c.Put(ctx, db, "k", 1), name)
		require.Error(t, c.Delete(ctx, db, "k"), name)
		require.Error(t, c.Update(ctx, db, "k", func(*int) error { return nil }), name)
		_, err = c.Has(ctx, db, "k")
		require.Error(t, err, name)
		_, err = c.Count(ctx, db)
		require.Error(t, err, name)
		for _, err = range c.All(ctx, db) {
		}
		require.Error(t, err, name)
	}
	_, err := domain.Collection[string, int]{}.Get(ctx, db, "k")
	require.EqualError(t, err, `get record "k": the collection has no name: set Name`)
	_, err = domain.Collection[string, int]{Name: "a b"}.Get(ctx, db, "k")
	require.ErrorContains(t, err, `"a b" can't name a collection: use letters, digits,`)
	for _, name := range []string{"a", "_x", "Orders-2.v1", strings.Repeat("x", 64)} {
		require.NoError(t, domain.Collection[string, int]{Name: name}.Put(ctx, db, "k", 1), name)
	}
}

func TestGarbageKeys(t *testing.T) {
	ctx, db := t.Context(), memory(t)
	for key, want := range map[string]string{
		"":                        "the key is empty",
		"a\x00b":                  "isn't text",
		"\xff\xfe":                "isn't text",
		strings.Repeat("k", 1025): "the key is 1025 bytes long, and the limit is 1024",
	} {
		require.ErrorContains(t, people.Put(ctx, db, key, Address{City: "x"}), want)
		_, err := people.Get(ctx, db, key)
		require.ErrorContains(t, err, want)
	}
	strange := []string{
		" ", "\t\n",
		"'; DROP TABLE records; --", "%", "_", "a%", "Ünïcödé", "日本", "🦊", "\u202e", "\U0010ffff",
		strings.Repeat("k", 1024),
	}
	for _, key := range strange {
		require.NoError(t, people.Put(ctx, db, key, Address{City: key}))
		got, err := people.Get(ctx, db, key)
		require.NoError(t, err)
		require.Equal(t, key, got.City)
	}
	require.ElementsMatch(t, strange, collect(t, people.All(ctx, db)))

	type pair [2]int
	_, err := domain.Collection[pair, int]{Name: "c"}.Get(ctx, db, pair{})
	require.ErrorContains(t, err, "a key can't be of type domain_test.pair: use a string, an integer, or a type with")
	_, err = domain.Collection[float64, int]{Name: "c"}.Get(ctx, db, 1)
	require.ErrorContains(t, err, "a key can't be of type float64")
	_, err = domain.Collection[*int, int]{Name: "c"}.Get(ctx, db, nil)
	require.ErrorContains(t, err, "a key can't be of type *int")
	_, err = domain.Collection[any, int]{Name: "c"}.Get(ctx, db, "x")
	require.ErrorContains(t, err, "a key can't be of type interface {}")
}

type dayKey int8

type oneWay string

func (o oneWay) MarshalText() ([]byte, error) {
	if o == "bad" {
		return nil, errors.New("no text for it")
	}
	return []byte(o), nil
}

// sorted puts records with the keys and expects them back in the order given.
func sorted[K comparable](t *testing.T, keys ...K) {
	t.Helper()
	ctx, db := t.Context(), memory(t)
	c := domain.Collection[K, int]{Name: "c"}
	for i := range keys {
		require.NoError(t, c.Put(ctx, db, keys[len(keys)-1-i], i))
	}
	require.Equal(t, keys, collect(t, c.All(ctx, db)))
	for i, k := range keys {
		require.Equal(t, len(keys)-1-i, len(collect(t, c.List(ctx, db, domain.Query[K]{After: &k}))))
		has, err := c.Has(ctx, db, k)
		require.NoError(t, err)
		require.True(t, has)
	}
}

func TestKeysKeepTheirOrder(t *testing.T) {
	sorted(t, math.MinInt64, -10, -9, -1, 0, 1, 9, 10, 42, math.MaxInt64)
	sorted[dayKey](t, -128, -1, 0, 127)
	sorted[uint64](t, 0, 9, 10, math.MaxInt64, math.MaxUint64)
	sorted(t, "A", "a", "a-b", "aa", "b", "ä", "日")
	sorted(t, uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7()))
}

func TestStoredKeysOfAnotherTypeAreNamed(t *testing.T) {
	ctx, db := t.Context(), memory(t)
	put := func(key string) {
		_, err := db.Exec(`DELETE FROM records`)
		require.NoError(t, err)
		require.NoError(t, domain.Collection[string, int]{Name: "c"}.Put(ctx, db, key, 1))
	}
	list := func(entries any) (err error) {
		switch entries := entries.(type) {
		case iter.Seq2[domain.Entry[dayKey, int], error]:
			for _, err = range entries {
			}
		case iter.Seq2[domain.Entry[uint8, int], error]:
			for _, err = range entries {
			}
		case iter.Seq2[domain.Entry[uuid.UUID, int], error]:
			for _, err = range entries {
			}
		case iter.Seq2[domain.Entry[oneWay, int], error]:
			for _, err = range entries {
			}
		}
		return err
	}
	for _, key := range []string{"x", "12", "00000000000000000001", "10000000000000000128", "20000000000000000000",
		"1xxxxxxxxxxxxxxxxxxx"} {
		put(key)
		err := list(domain.Collection[dayKey, int]{Name: "c"}.All(ctx, db))
		require.ErrorContains(t, err, fmt.Sprintf("list c: stored key %q isn't of type domain_test.dayKey", key))
	}
	for _, key := range []string{"x", "-1", "00000000000000000256"} {
		put(key)
		require.ErrorContains(t, list(domain.Collection[uint8, int]{Name: "c"}.All(ctx, db)), "isn't of type uint8")
	}
	require.ErrorContains(t, list(domain.Collection[uuid.UUID, int]{Name: "c"}.All(ctx, db)), "isn't of type uuid.UUID")
	require.ErrorContains(t, list(domain.Collection[oneWay, int]{Name: "c"}.All(ctx, db)), "give it UnmarshalText")
	_, err := domain.Collection[oneWay, int]{Name: "c"}.Get(ctx, db, "bad")
	require.ErrorContains(t, err, "no text for it")
}

func TestListChoosesRecords(t *testing.T) {
	ctx, db := t.Context(), memory(t)
	c := domain.Collection[string, int]{Name: "c"}
	for i := range 200 { // several pages
		require.NoError(t, c.Put(ctx, db, fmt.Sprintf("a/%03d", i), i))
	}
	for _, key := range []string{"a", "a.", "a/", "a0", "b/1", "b/2", "\ud7ffx", "\U0010ffffx"} {
		require.NoError(t, c.Put(ctx, db, key, 0))
	}
	list := func(q domain.Query[string]) []string { return collect(t, c.List(ctx, db, q)) }
	require.Len(t, list(domain.Query[string]{}), 208)
	require.Len(t, list(domain.Query[string]{Prefix: "a/"}), 201)
	require.Len(t, list(domain.Query[string]{Prefix: "a"}), 204)
	require.Equal(t, []string{"a/010", "a/011"}, list(domain.Query[string]{Prefix: "a/01", Limit: 2}))
	require.Equal(t, []string{"a/198", "a/199"}, list(domain.Query[string]{Prefix: "a/", After: new("a/197")}))
	require.Equal(t, []string{"b/1", "b/2"}, list(domain.Query[string]{Prefix: "b", After: new("a/5")}))
	require.Equal(t, []string{"a/", "a/000"}, list(domain.Query[string]{After: new("a."), Limit: 2}))
	require.Equal(t, []string{"\U0010ffffx"}, list(domain.Query[string]{Prefix: "\U0010ffff"}))
	require.Equal(t, []string{"\ud7ffx"}, list(domain.Query[string]{Prefix: "\ud7ff"}))
	require.Empty(t, list(domain.Query[string]{Prefix: "a/", After: new("a0")}))
	require.Empty(t, list(domain.Query[string]{Prefix: "c"}))
	for _, limit := range []int{1, 63, 64, 65, 128, 129, 207, 208, 209, 1000} {
		require.Len(t, list(domain.Query[string]{Limit: limit}), min(limit, 208))
	}

	for want, q := range map[string]domain.Query[string]{
		"the limit is negative":  {Limit: -1},
		"prefix: the key isn't":  {Prefix: "\xff"},
		"after: the key is empt": {After: new("")},
	} {
		var err error
		for _, err = range c.List(ctx, db, q) {
		}
		require.ErrorContains(t, err, want)
	}
	for _, err := range (domain.Collection[int, int]{Name: "n"}).List(ctx, db, domain.Query[int]{Prefix: "1"}) {
		require.ErrorContains(t, err, "keys of type int have no prefix: use After and Limit")
	}
}

func TestTheBodyOfALoopMayUseTheSameDB(t *testing.T) {
	ctx, db := t.Context(), memory(t)
	c := domain.Collection[int, int]{Name: "c"}
	for i := range 150 {
		require.NoError(t, c.Put(ctx, db, i, i))
	}
	for e, err := range c.All(ctx, db) {
		require.NoError(t, err)
		if e.Key%2 == 0 {
			require.NoError(t, c.Delete(ctx, db, e.Key))
		} else if e.Key == 99 {
			break
		}
	}
	n, err := c.Count(ctx, db)
	require.NoError(t, err)
	require.Equal(t, 100, n)
}

func TestErrorsOfTheDatabaseAreWrapped(t *testing.T) {
	db := memory(t)
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, people.Put(ctx, db, "ann", Address{City: "Kiel"}))
	cancel()
	_, err := people.Get(ctx, db, "ann")
	require.ErrorIs(t, err, context.Canceled)
	_, err = people.Count(ctx, db)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, people.Put(ctx, db, "ann", Address{City: "Kiel"}), context.Canceled)
	for _, err := range people.All(ctx, db) {
		require.ErrorIs(t, err, context.Canceled)
	}
}

// onDisk opens a database with several connections, as a program has it.
func onDisk(t *testing.T) *sql.DB {
	t.Helper()
	path := filepath.ToSlash(filepath.Join(t.TempDir(), "records.db"))
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(wal)&_pragma=busy_timeout(10000)")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	_, err = db.Exec(domain.Schema)
	require.NoError(t, err)
	return db
}

func TestNoUpdateIsLostAndReadersSeeWholeRecords(t *testing.T) {
	ctx, db := t.Context(), onDisk(t)
	type counter struct{ A, B int }
	c := domain.Collection[string, counter]{Name: "counters"}
	require.NoError(t, c.Put(ctx, db, "k", counter{}))
	const writers, each = 4, 25
	var wg sync.WaitGroup
	errs := make(chan error, 2*writers)
	for range writers {
		wg.Go(func() {
			for range each {
				if err := c.Update(ctx, db, "k", func(v *counter) error { v.A++; v.B++; return nil }); err != nil {
					errs <- err
					return
				}
			}
		})
		wg.Go(func() {
			for range each {
				v, err := c.Get(ctx, db, "k")
				if err != nil || v.A != v.B {
					errs <- fmt.Errorf("read %+v: %w", v, err)
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	v, err := c.Get(ctx, db, "k")
	require.NoError(t, err)
	require.Equal(t, counter{writers * each, writers * each}, v)
}

func TestUpdateCallsAgainAfterAConcurrentChange(t *testing.T) {
	ctx, db := t.Context(), memory(t)
	c := domain.Collection[string, int]{Name: "c"}
	require.NoError(t, c.Put(ctx, db, "k", 1))
	calls := 0
	require.NoError(t, c.Update(ctx, db, "k", func(n *int) error {
		if calls++; calls == 1 {
			require.NoError(t, c.Put(ctx, db, "k", 10))
		}
		*n++
		return nil
	}))
	n, err := c.Get(ctx, db, "k")
	require.NoError(t, err)
	require.Equal(t, 11, n)
	require.Equal(t, 2, calls)

	err = c.Update(ctx, db, "k", func(n *int) error { *n++; return c.Delete(ctx, db, "k") })
	require.ErrorIs(t, err, domain.ErrNotFound)
}

// TestACollectionIsAMap compares a collection with a map under random operations.
func TestACollectionIsAMap(t *testing.T) {
	ctx, db := t.Context(), memory(t)
	rapid.Check(t, func(t *rapid.T) {
		_, err := db.Exec(`DELETE FROM records`)
		require.NoError(t, err)
		c := domain.Collection[string, string]{Name: "c"}
		model := map[string]string{}
		key := rapid.StringMatching(`[abä日/]{1,3}`)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k, v := key.Draw(t, "key"), strings.ToValidUTF8(rapid.String().Draw(t, "value"), "")
				require.NoError(t, c.Put(ctx, db, k, v))
				model[k] = v
			},
			"delete": func(t *rapid.T) {
				k := key.Draw(t, "key")
				require.NoError(t, c.Delete(ctx, db, k))
				delete(model, k)
			},
			"get": func(t *rapid.T) {
				k := key.Draw(t, "key")
				v, err := c.Get(ctx, db, k)
				want, ok := model[k]
				require.Equal(t, want, v)
				require.Equal(t, ok, err == nil)
			},
			"list": func(t *rapid.T) {
				prefix := rapid.StringMatching(`[abä日/]{0,2}`).Draw(t, "prefix")
				got := map[string]string{}
				for e, err := range c.List(ctx, db, domain.Query[string]{Prefix: prefix}) {
					require.NoError(t, err)
					got[e.Key] = e.Value
				}
				want := map[string]string{}
				for k, v := range model {
					if strings.HasPrefix(k, prefix) {
						want[k] = v
					}
				}
				require.Equal(t, want, got)
			},
		})
	})
}
