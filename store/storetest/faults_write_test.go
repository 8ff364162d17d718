package storetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// faultsOfWriting are faults of updates, of opening and of closing.
var faultsOfWriting = []fault{
	{name: "a crash loses the last update", rule: "durable", file: true, wrap: func(s *faulty) store.Store { return &forgetful{faulty: s} }},
	{name: "an update that failed is committed", rule: "all-or-nothing", wrap: func(s *faulty) store.Store { return &committing{s} }},
	{name: "an update that failed is committed", rule: "user-sql", wrap: func(s *faulty) store.Store { return &committing{s} }},
	{name: "an update begins though its context has ended", rule: "all-or-nothing",
		wrap: func(s *faulty) store.Store { return &deafToContexts{s} }},
	{name: "an entry does not lead to the one before", rule: "chained", wrap: inTx(func(tx store.Tx) store.Tx { return unchained{tx} })},
	{name: "the history of a tree lacks its newest entry", rule: "history", wrap: inTx(func(tx store.Tx) store.Tx { return shortened{tx} })},
	{name: "positions do not rise", rule: "chained", wrap: inTx(func(tx store.Tx) store.Tx { return sinking{tx} })},
	{name: "a tree is loaded without its waiting steps", rule: "load", wrap: loading(func(t *state.Tree) {
		t.Each(func(c *state.Case) { c.Steps = state.Steps{} })
	})},
	{name: "a tree that is not there is empty", rule: "load", wrap: inTx(func(tx store.Tx) store.Tx { return inventing{tx} })},
	{name: "the steps of the transaction are not listed", rule: "waits",
		wrap: inTx(func(tx store.Tx) store.Tx { return &lateSteps{Tx: tx, opened: make(map[workitem.StepID]bool)} })},
	{name: "child cases come in no order", rule: "children", wrap: loading(func(t *state.Tree) {
		t.Each(func(c *state.Case) { c.Children = reversed(c.Children) })
	})},
	{name: "a child case is loaded as a root case", rule: "children", wrap: inTx(func(tx store.Tx) store.Tx { return climbing{tx} })},
	{name: "an item is not found in its own transaction", rule: "find",
		wrap: inTx(func(tx store.Tx) store.Tx { return &late{Tx: tx, opened: make(map[workitem.ID]bool)} })},
	{name: "what is not there is found", rule: "find", wrap: inTx(func(tx store.Tx) store.Tx { return finding{tx} })},
	{name: "the key of a removed case stays", rule: "remove", wrap: keeping(func(k keeper) keeper { return k })},
	{name: "a removal is not undone with its savepoint", rule: "remove-undone",
		wrap: inTx(func(tx store.Tx) store.Tx { return &stubborn{Tx: tx, removed: make(map[workitem.CaseID]bool)} })},
	{name: "a crash forgets keys", rule: "keys", wrap: func(s *faulty) store.Store { return &amnesiac{s} }},
	{name: "a key is used twice", rule: "keys", wrap: inTx(func(tx store.Tx) store.Tx { return lenient{tx} })},
	{name: "keys are compared without case", rule: "keys", wrap: keeping(func(k keeper) keeper { k.fold = true; return k })},
	{name: "the answer to a command is lost", rule: "keys", wrap: inTx(func(tx store.Tx) store.Tx { return silent{tx} })},
	{name: "a key is held though its case was canceled", rule: "key-holders", wrap: func(s *faulty) store.Store {
		held := make(map[string][]workitem.CaseID)
		s.tx = func(tx store.Tx) store.Tx { return clinging{tx, held} }
		return s
	}},
	{name: "a key is held in the next transaction only", rule: "key-holders",
		wrap: inTx(func(tx store.Tx) store.Tx { return &lateKeys{Tx: tx, opened: make(map[workitem.CaseID]bool)} })},
	{name: "a start is found in the next transaction only", rule: "key-starts",
		wrap: inTx(func(tx store.Tx) store.Tx { return &lateKeys{Tx: tx, opened: make(map[workitem.CaseID]bool)} })},
	{name: "a restart is not found within its transaction", rule: "successors",
		wrap: inTx(func(tx store.Tx) store.Tx { return &lateKeys{Tx: tx, opened: make(map[workitem.CaseID]bool)} })},
	{name: "a start at the time given is found", rule: "key-starts", wrap: inTx(func(tx store.Tx) store.Tx { return earlyStarts{tx} })},
	{name: "a savepoint undoes nothing", rule: "savepoint", wrap: inTx(func(tx store.Tx) store.Tx { return flat{tx} })},
	{name: "a savepoint keeps its error", rule: "savepoint", wrap: inTx(func(tx store.Tx) store.Tx { return calm{tx} })},
	{name: "the user's context is ignored", rule: "user-sql", wrap: withDB(func(db domain.DB) domain.DB { return contextless{db} })},
	{name: "the user ends the transaction", rule: "user-guard", wrap: withDB(func(db domain.DB) domain.DB { return unguarded{db} })},
	{name: "a handle is used after its transaction", rule: "user-guard", wrap: withDB(func(db domain.DB) domain.DB { return undying{db} })},
	{name: "requests are listed from the first", rule: "requests", file: true,
		wrap: inTx(func(tx store.Tx) store.Tx { return asking{Tx: tx, first: true} })},
	{name: "more requests are listed than asked for", rule: "requests", file: true,
		wrap: inTx(func(tx store.Tx) store.Tx { return asking{Tx: tx, many: true} })},
	{name: "a setting is forgotten", rule: "settings", wrap: inTx(func(tx store.Tx) store.Tx { return dropping{tx} })},
	{name: "a setting is read as it was before the transaction", rule: "settings", wrap: inTx(func(tx store.Tx) store.Tx { return &lateSettings{Tx: tx} })},
	{name: "what has changed a setting is lost", rule: "setting-changes", wrap: withDB(func(db domain.DB) domain.DB { return recordless{db} })},
	{name: "what has changed a setting is not undone with its savepoint", rule: "setting-changes",
		wrap: inTx(func(tx store.Tx) store.Tx { return flat{tx} })},
	{name: "a limit is forgotten", rule: "limits", wrap: func(s *faulty) store.Store { return &generous{s} }},
	{name: "a limit that does not last is found by its text", rule: "limits", wrap: inView(func(r store.Reader) store.Reader { return anyRow{r} })},
	{name: "a reply to no request is taken", rule: "requests", file: true, wrap: inTx(func(tx store.Tx) store.Tx { return replying{tx} })},
	{name: "a definition comes twice", rule: "definitions", wrap: inView(func(r store.Reader) store.Reader { return doubling{r} })},
	{name: "a definition that cannot be compiled is registered", rule: "definitions",
		wrap: func(s *faulty) store.Store { return &credulous{s} }},
	{name: "an update of a read-only store is refused without a reason", rule: "read-only",
		wrap: func(s *faulty) store.Store { return &polite{s} }},
	{name: "a closed store is idle without an error", rule: "closed", wrap: func(s *faulty) store.Store { return &restless{s} }},
	{name: "a store cannot be closed twice", rule: "closed", wrap: func(s *faulty) store.Store { return &once{faulty: s} }},
	{name: "a transaction is used after its end", rule: "closed", wrap: inTx(func(tx store.Tx) store.Tx { return inventing{tx} })},
}

// forgetful puts the files back, after a crash, that were there before the last update.
type forgetful struct {
	*faulty
	files map[string][]byte
}

func (s *forgetful) Update(ctx context.Context, f func(store.Tx) error) error {
	s.files = make(map[string][]byte)
	for _, end := range []string{"", "-wal"} {
		if data, err := os.ReadFile(s.opener.path + end); err == nil {
			s.files[end] = data
		}
	}
	return s.faulty.Update(ctx, f)
}

func (s *forgetful) Kill() error {
	err := s.faulty.Kill()
	for end, data := range s.files {
		err = errors.Join(err, os.WriteFile(s.opener.path+end, data, 0o600))
	}
	return err
}

type committing struct{ *faulty }

func (s *committing) Update(ctx context.Context, f func(store.Tx) error) error {
	var failed error
	err := s.faulty.Update(ctx, func(tx store.Tx) error { failed = f(tx); return nil })
	return errors.Join(err, failed)
}

type deafToContexts struct{ *faulty }

func (s *deafToContexts) Update(ctx context.Context, f func(store.Tx) error) error {
	return errors.Join(s.faulty.Update(context.WithoutCancel(ctx), f), ctx.Err())
}

type unchained struct{ store.Tx }

func (tx unchained) Append(ctx context.Context, e *store.Entry, t *state.Tree) error {
	err := tx.Tx.Append(ctx, e, t)
	e.Prev = 0
	return err
}

type sinking struct{ store.Tx }

func (tx sinking) Append(ctx context.Context, e *store.Entry, t *state.Tree) error {
	err := tx.Tx.Append(ctx, e, t)
	e.Seq = 1000 - e.Seq
	return err
}

// loaded changes each tree that is loaded.
type loaded struct {
	store.Tx
	change func(*state.Tree)
}

func loading(change func(*state.Tree)) func(*faulty) store.Store {
	return inTx(func(tx store.Tx) store.Tx { return loaded{tx, change} })
}

func (tx loaded) Load(ctx context.Context, root workitem.CaseID) (*state.Tree, error) {
	t, err := tx.Tx.Load(ctx, root)
	if err == nil {
		tx.change(t)
	}
	return t, err
}

func reversed[T any](list []T) []T {
	other := make([]T, len(list))
	for i, v := range list {
		other[len(list)-1-i] = v
	}
	return other
}

type inventing struct{ store.Tx }

func (tx inventing) Load(ctx context.Context, root workitem.CaseID) (*state.Tree, error) {
	if t, err := tx.Tx.Load(ctx, root); err == nil {
		return t, nil
	}
	return state.NewTree(), nil
}

type climbing struct{ store.Tx }

func (tx climbing) Load(ctx context.Context, id workitem.CaseID) (*state.Tree, error) {
	root, err := tx.Root(ctx, id)
	if err != nil {
		return nil, err
	}
	return tx.Tx.Load(ctx, root)
}

// late finds no item that its own transaction opened.
type late struct {
	store.Tx
	opened map[workitem.ID]bool
}

func (tx *late) Append(ctx context.Context, e *store.Entry, t *state.Tree) error {
	for _, event := range e.Changes {
		if o, ok := event.(*state.ItemOpened); ok {
			tx.opened[o.Item.ID] = true
		}
	}
	return tx.Tx.Append(ctx, e, t)
}

func (tx *late) Item(ctx context.Context, id workitem.ID) (*store.ItemRow, error) {
	if tx.opened[id] {
		return nil, store.ErrNotFound
	}
	return tx.Tx.Item(ctx, id)
}

// lateSteps lists no step that its own transaction opened.
type lateSteps struct {
	store.Tx
	opened map[workitem.StepID]bool
}

func (tx *lateSteps) Append(ctx context.Context, e *store.Entry, t *state.Tree) error {
	for _, event := range e.Changes {
		if o, ok := event.(*state.StepOpened); ok {
			tx.opened[o.Step.ID] = true
		}
	}
	return tx.Tx.Append(ctx, e, t)
}

func (tx *lateSteps) Steps(ctx context.Context, owner [16]byte) ([]*workitem.Step, error) {
	steps, err := tx.Tx.Steps(ctx, owner)
	return slices.DeleteFunc(steps, func(s *workitem.Step) bool { return tx.opened[s.ID] }), err
}

type finding struct{ store.Tx }

func (tx finding) Root(ctx context.Context, id [16]byte) (workitem.CaseID, error) {
	root, err := tx.Tx.Root(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return workitem.CaseID(id), nil
	}
	return root, err
}

// keeper finds every entry again that was ever appended with a key.
type keeper struct {
	store.Tx
	keys map[string]*store.Entry
	fold bool // keys that differ in case alone are the same
}

func keeping(set func(keeper) keeper) func(*faulty) store.Store {
	return func(s *faulty) store.Store {
		s.tx = func(tx store.Tx) store.Tx { return set(keeper{Tx: tx, keys: s.opener.keys}) }
		return s
	}
}

func (tx keeper) Append(ctx context.Context, e *store.Entry, t *state.Tree) error {
	if e.Key != "" {
		tx.keys[e.Key] = e
	}
	return tx.Tx.Append(ctx, e, t)
}

func (tx keeper) Answered(ctx context.Context, key string) (*store.Entry, error) {
	for known, e := range tx.keys {
		if known == key && !tx.fold || tx.fold && known != key && strings.EqualFold(known, key) {
			return e, nil
		}
	}
	return tx.Tx.Answered(ctx, key)
}

// stubborn does not find a case any more that was removed in a savepoint which was undone.
type stubborn struct {
	store.Tx
	removed map[workitem.CaseID]bool
}

func (tx *stubborn) Append(ctx context.Context, e *store.Entry, t *state.Tree) error {
	for _, event := range e.Changes {
		if r, ok := event.(*state.CaseRemoved); ok {
			tx.removed[r.Case] = true
		}
	}
	return tx.Tx.Append(ctx, e, t)
}

func (tx *stubborn) Load(ctx context.Context, root workitem.CaseID) (*state.Tree, error) {
	if tx.removed[root] {
		return nil, store.ErrNotFound
	}
	return tx.Tx.Load(ctx, root)
}

// amnesiac knows, after a crash, no key that was used before.
type amnesiac struct{ *faulty }

func (s *amnesiac) Kill() error {
	s.opener.wrap = inTx(func(tx store.Tx) store.Tx { return forgetting{tx} })
	return s.faulty.Kill()
}

type forgetting struct{ store.Tx }

func (tx forgetting) Answered(context.Context, string) (*store.Entry, error) {
	return nil, store.ErrNotFound
}

type lenient struct{ store.Tx }

func (tx lenient) Append(ctx context.Context, e *store.Entry, t *state.Tree) error {
	if _, err := tx.Answered(ctx, e.Key); e.Key != "" && err == nil {
		e.Key = ""
	}
	return tx.Tx.Append(ctx, e, t)
}

type silent struct{ store.Tx }

func (tx silent) Answered(ctx context.Context, key string) (*store.Entry, error) {
	e, err := tx.Tx.Answered(ctx, key)
	if err == nil {
		e.Answer = nil
	}
	return e, err
}

type flat struct{ store.Tx }

func (tx flat) Savepoint(_ context.Context, f func() error) error { return f() }

type calm struct{ store.Tx }

func (tx calm) Savepoint(ctx context.Context, f func() error) error {
	_ = tx.Tx.Savepoint(ctx, f)
	return nil
}

type asking struct {
	store.Tx
	first, many bool
}

func (tx asking) Requests(ctx context.Context, after int64, max int) ([]store.Request, error) {
	if tx.first {
		after = 0
	}
	if tx.many {
		max = 100
	}
	return tx.Tx.Requests(ctx, after, max)
}

type replying struct{ store.Tx }

func (tx replying) Reply(ctx context.Context, id int64, a store.Answer) error {
	if err := tx.Tx.Reply(ctx, id, a); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil
}

type credulous struct{ *faulty }

func (s *credulous) Register(ctx context.Context, defs []*store.Definition) error {
	_ = s.faulty.Register(ctx, defs)
	return nil
}

type polite struct{ *faulty }

func (s *polite) Update(ctx context.Context, f func(store.Tx) error) error {
	if s.o.ReadOnly {
		return errors.New("no")
	}
	return s.faulty.Update(ctx, f)
}

type restless struct{ *faulty }

func (s *restless) Idle(ctx context.Context) error {
	_ = s.faulty.Idle(ctx)
	return nil
}

type once struct {
	*faulty
	closed bool
}

func (s *once) Close() error {
	if s.closed {
		return errors.New("it is closed")
	}
	s.closed = true
	return s.faulty.Close()
}

type dropping struct{ store.Tx }

func (dropping) Set(context.Context, string, json.RawMessage) error { return nil }

// lateSettings finds nothing of what the transaction itself has set.
type lateSettings struct {
	store.Tx
	set map[string]bool
}

// Set implements store.Tx.
func (tx *lateSettings) Set(ctx context.Context, name string, value json.RawMessage) error {
	if tx.set == nil {
		tx.set = make(map[string]bool)
	}
	tx.set[name] = true
	return tx.Tx.Set(ctx, name, value)
}

// Setting implements store.Tx.
func (tx *lateSettings) Setting(ctx context.Context, name string) (json.RawMessage, error) {
	if tx.set[name] {
		return nil, nil
	}
	return tx.Tx.Setting(ctx, name)
}

// generous keeps nothing of limits.
type generous struct{ *faulty }

// WriteLimits implements store.Limits.
func (s *generous) WriteLimits(_ context.Context, rows []store.LimitRow, _ int64) (written []store.LimitKey, err error) {
	for _, r := range rows {
		written = append(written, r.LimitKey)
	}
	return written, nil
}

// shortened leaves out the newest entry of a history.
type shortened struct{ store.Tx }

func (t shortened) History(ctx context.Context, tree *state.Tree, until int64) ([]*store.Entry, error) {
	entries, err := t.Tx.History(ctx, tree, until)
	return entries[:max(0, len(entries)-1)], err
}
