package storetest_test

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"slices"
	"strings"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// faultsOfReading are faults of views.
var faultsOfReading = []fault{
	{name: "items of earlier activations are not listed", rule: "generations",
		wrap: inView(func(r store.Reader) store.Reader { return shallow{r} })},
	{name: "a view sees the state before the last update", rule: "present", file: true,
		wrap: func(s *faulty) store.Store { return &stale{faulty: s} }},
	{name: "the newest case is in the journal alone", rule: "concurrent", file: true,
		wrap: inView(func(r store.Reader) store.Reader { return lagging{r} })},
	{name: "live jobs come in the order of their ids", rule: "due-order", wrap: inView(func(r store.Reader) store.Reader { return unordered{r} })},
	{name: "a due time is cut to seconds", rule: "due-order", wrap: inView(func(r store.Reader) store.Reader { return coarse{r} })},
	{name: "the first item of a queue comes last", rule: "pages", wrap: inView(func(r store.Reader) store.Reader { return rotated{r} })},
	{name: "jobs that are left to be done hold nothing back", rule: "removable",
		wrap: inView(func(r store.Reader) store.Reader { return careless{r} })},
	{name: "the jobs of child cases are not those of their root case", rule: "incident-filter",
		wrap: inView(func(r store.Reader) store.Reader { return childless{r} })},
	{name: "a count is wrong", rule: "counts", wrap: inView(func(r store.Reader) store.Reader { return miscounting{Reader: r} })},
	{name: "a count is not there", rule: "counts", wrap: inView(func(r store.Reader) store.Reader { return miscounting{Reader: r, drop: true} })},
	{name: "a job that is due is not counted", rule: "backlog", wrap: inView(func(r store.Reader) store.Reader { return hurried{r} })},
	{name: "only queues of the first items are listed", rule: "queues", wrap: inView(func(r store.Reader) store.Reader { return glancing{r} })},
	{name: "open incidents are cut off in silence", rule: "incidents", wrap: inView(func(r store.Reader) store.Reader { return curt{r} })},
	{name: "the definition of an incident is not told", rule: "incidents", wrap: inView(func(r store.Reader) store.Reader { return vague{r} })},
	{name: "a view finds no key", rule: "keys", wrap: inView(func(r store.Reader) store.Reader { return keyless{r} })},
	{name: "what ended and goes on still counts", rule: "ended-again", wrap: inView(func(r store.Reader) store.Reader { return sticky{r} })},
	{name: "waits are not counted", rule: "ended", wrap: inView(func(r store.Reader) store.Reader { return waitless{r} })},
	{name: "what ended is counted wrong", rule: "ended", wrap: inView(func(r store.Reader) store.Reader { return undercounting{r} })},
	{name: "trees that are read together come in the order of their ids", rule: "load", wrap: inView(func(r store.Reader) store.Reader { return sorted{r} })},
	{name: "trees that are read together lack their waiting steps", rule: "waits", wrap: inView(func(r store.Reader) store.Reader { return stepless{r} })},
	{name: "queries of the user write", rule: "user-view", wrap: inView(func(r store.Reader) store.Reader { return writable{r} })},
	{name: "large payloads are cut off", rule: "payloads", wrap: inView(func(r store.Reader) store.Reader { return cutting{r} })},
	{name: "times are cut to seconds", rule: "payloads", wrap: inView(func(r store.Reader) store.Reader { return slow{r} })},
	{name: "a failure loses what is not ASCII", rule: "payloads", wrap: inView(func(r store.Reader) store.Reader { return american{r} })},
}

// sorted reads trees by the ids of their roots.
type sorted struct{ store.Reader }

func (r sorted) Trees(ctx context.Context, roots []workitem.CaseID) ([]*state.Tree, error) {
	roots = slices.Clone(roots)
	slices.SortFunc(roots, func(a, b workitem.CaseID) int { return strings.Compare(a.String(), b.String()) })
	return r.Reader.Trees(ctx, roots)
}

// hurried counts what was due a moment before.
type hurried struct{ store.Reader }

func (r hurried) Backlog(ctx context.Context, now time.Time) ([]store.QueueBacklog, error) {
	return r.Reader.Backlog(ctx, now.Add(-time.Microsecond))
}

// glancing lists the first queue alone, if it may count little.
type glancing struct{ store.Reader }

func (r glancing) Queues(ctx context.Context, most int) ([]store.QueueCount, bool, error) {
	counts, whole, err := r.Reader.Queues(ctx, most)
	return counts[:min(len(counts), most)], whole, err
}

// curt does not say that there are more incidents.
type curt struct{ store.Reader }

func (r curt) OpenIncidents(ctx context.Context, most int) ([]workitem.JobID, bool, error) {
	ids, _, err := r.Reader.OpenIncidents(ctx, most)
	return ids, true, err
}

// vague lists incidents without the definition of their cases.
type vague struct{ store.Reader }

func (r vague) IncidentHeads(ctx context.Context, ids []workitem.JobID) ([]store.IncidentHead, error) {
	heads, err := r.Reader.IncidentHeads(ctx, ids)
	for i := range heads {
		heads[i].Fingerprint = ""
	}
	return heads, err
}

// keyless finds nothing by an idempotency key.
type keyless struct{ store.Reader }

func (keyless) Answered(context.Context, string) (*store.Entry, error) { return nil, store.ErrNotFound }

// stepless reads trees without their waiting steps.
type stepless struct{ store.Reader }

func (r stepless) Trees(ctx context.Context, roots []workitem.CaseID) ([]*state.Tree, error) {
	trees, err := r.Reader.Trees(ctx, roots)
	for _, tree := range trees {
		tree.Each(func(c *state.Case) { c.LoadWaits(nil, nil) })
	}
	return trees, err
}

// shallow lists the items of each task's latest activation alone.
type shallow struct{ store.Reader }

func (r shallow) Items(ctx context.Context, f store.ItemFilter) ([]*store.ItemRow, error) {
	items, err := r.Reader.Items(ctx, f)
	newest := make(map[string]int)
	of := func(it *store.ItemRow) string { return it.Case.String() + it.Task }
	for _, it := range items {
		newest[of(it)] = max(newest[of(it)], it.Generation)
	}
	return slices.DeleteFunc(items, func(it *store.ItemRow) bool { return it.Generation < newest[of(it)] }), err
}

// stale shows what was there before the last update. It serves one goroutine.
type stale struct {
	*faulty
	before  store.Reader
	release chan struct{}
	done    chan error
}

// hold keeps a view of the present state open.
func (s *stale) hold(ctx context.Context) {
	s.let()
	ready := make(chan store.Reader)
	s.release, s.done = make(chan struct{}), make(chan error, 1)
	release := s.release
	go func() {
		s.done <- s.faulty.View(ctx, func(r store.Reader) error {
			ready <- r
			<-release
			return nil
		})
	}()
	s.before = <-ready
}

// let ends the view that is held.
func (s *stale) let() {
	if s.release != nil {
		close(s.release)
		<-s.done
		s.release, s.before = nil, nil
	}
}

func (s *stale) Update(ctx context.Context, f func(store.Tx) error) error {
	s.hold(ctx)
	return s.faulty.Update(ctx, f)
}

func (s *stale) View(ctx context.Context, f func(store.Reader) error) error {
	if s.before == nil {
		return s.faulty.View(ctx, f)
	}
	return f(s.before)
}

func (s *stale) Close() error {
	s.let()
	return s.faulty.Close()
}

// lagging does not list the newest root case.
type lagging struct{ store.Reader }

func (r lagging) Cases(ctx context.Context, f store.CaseFilter) ([]*state.Case, error) {
	cases, err := r.Reader.Cases(ctx, f)
	if f.RootOnly && len(cases) > 0 {
		cases = cases[:len(cases)-1]
	}
	return cases, err
}

// unordered lists live jobs like all others.
type unordered struct{ store.Reader }

func (r unordered) Jobs(ctx context.Context, f store.JobFilter) ([]*state.Job, error) {
	all := f
	all.Page = store.Page{Limit: 1 << 20}
	jobs, err := r.Reader.Jobs(ctx, all)
	slices.SortFunc(jobs, func(a, b *state.Job) int { return cmp.Compare(a.ID.String(), b.ID.String()) })
	if f.Desc {
		slices.Reverse(jobs)
	}
	if i := slices.IndexFunc(jobs, func(j *state.Job) bool { return j.ID.String() == f.After }); i >= 0 {
		jobs = jobs[i+1:]
	}
	if f.Limit > 0 {
		jobs = jobs[:min(f.Limit, len(jobs))]
	}
	return jobs, err
}

type coarse struct{ store.Reader }

func (r coarse) Jobs(ctx context.Context, f store.JobFilter) ([]*state.Job, error) {
	if !f.Due.IsZero() {
		f.Due = f.Due.Add(time.Second).Truncate(time.Second)
	}
	return r.Reader.Jobs(ctx, f)
}

type rotated struct{ store.Reader }

func (r rotated) Items(ctx context.Context, f store.ItemFilter) ([]*store.ItemRow, error) {
	items, err := r.Reader.Items(ctx, f)
	if len(items) > 1 && f.ByPriority() {
		items = append(items[1:], items[0])
	}
	return items, err
}

// careless lists every case that is to be removed by its time.
type careless struct{ store.Reader }

func (r careless) Cases(ctx context.Context, f store.CaseFilter) ([]*state.Case, error) {
	if f.Removable.IsZero() {
		return r.Reader.Cases(ctx, f)
	}
	until := f.Removable
	f.Removable, f.RootOnly, f.Page = time.Time{}, true, store.Page{Limit: 1 << 20}
	cases, err := r.Reader.Cases(ctx, f)
	return slices.DeleteFunc(cases, func(c *state.Case) bool { return c.KeepUntil.IsZero() || c.KeepUntil.After(until) }), err
}

type miscounting struct {
	store.Reader
	drop bool
}

func (r miscounting) Counts(ctx context.Context) ([]store.Count, error) {
	counts, err := r.Reader.Counts(ctx)
	if len(counts) > 0 && r.drop {
		counts = counts[1:]
	} else if len(counts) > 0 {
		counts[0].N++
	}
	return counts, err
}

// undercounting has one item less that ended.
type undercounting struct{ store.Reader }

func (r undercounting) Ended(ctx context.Context, f store.RateFilter) ([]store.Ended, error) {
	all, err := r.Reader.Ended(ctx, f)
	if len(all) > 0 {
		all[0].N--
	}
	return all, err
}

// waitless does not count how long items waited.
type waitless struct{ store.Reader }

func (r waitless) Ended(ctx context.Context, f store.RateFilter) ([]store.Ended, error) {
	all, err := r.Reader.Ended(ctx, f)
	return slices.DeleteFunc(all, func(e store.Ended) bool { return e.State == workitem.Started }), err
}

// sticky counts a case as failed as soon as there is one.
type sticky struct{ store.Reader }

func (r sticky) Ended(ctx context.Context, f store.RateFilter) ([]store.Ended, error) {
	all, err := r.Reader.Ended(ctx, f)
	if cases, failed := r.Reader.Cases(ctx, store.CaseFilter{}); len(all) == 0 && f.Cases && len(cases) > 0 && failed == nil {
		all = append(all, store.Ended{Workflow: cases[0].Workflow, State: workitem.Failed, Hour: cases[0].Created.Truncate(time.Hour), N: 1})
	}
	return all, err
}

type writable struct{ store.Reader }

func (r writable) DB() domain.DB { return undying{r.Reader.DB()} }

// ofDB is a transaction with another handle for the user.
type ofDB struct {
	store.Tx
	wrap func(domain.DB) domain.DB
}

func (tx ofDB) DB() domain.DB { return tx.wrap(tx.Tx.DB()) }

func withDB(wrap func(domain.DB) domain.DB) func(*faulty) store.Store {
	return inTx(func(tx store.Tx) store.Tx { return ofDB{tx, wrap} })
}

type contextless struct{ domain.DB }

func (db contextless) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return db.DB.ExecContext(context.WithoutCancel(ctx), query, args...)
}

// recordless writes no record of a collection.
type recordless struct{ domain.DB }

func (db recordless) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if strings.Contains(query, "INSERT INTO") && strings.Contains(query, "records") {
		return driver.RowsAffected(1), nil
	}
	return db.DB.ExecContext(ctx, query, args...)
}

// childless lists the jobs of root cases without those of their child cases.
type childless struct{ store.Reader }

func (r childless) Jobs(ctx context.Context, f store.JobFilter) ([]*state.Job, error) {
	all, err := r.Reader.Jobs(ctx, f)
	return slices.DeleteFunc(all, func(j *state.Job) bool { return f.Roots != nil && j.Case != j.Root }), err
}

// unguarded seems to do what ends a transaction.
type unguarded struct{ domain.DB }

func (db unguarded) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	result, err := db.DB.ExecContext(ctx, query, args...)
	if strings.HasPrefix(query, "COMMIT") {
		return result, nil
	}
	return result, err
}

// undying seems to do whatever it is asked to, except what a transaction forbids.
type undying struct{ domain.DB }

func (db undying) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	result, err := db.DB.ExecContext(ctx, query, args...)
	if strings.Contains(query, "INSERT") || strings.Contains(query, "DELETE") {
		return result, nil
	}
	return result, err
}

// anyRow finds rows of limits by their text, whether they last or not.
type anyRow struct{ store.Reader }

func (r anyRow) LimitRows(ctx context.Context, f store.LimitFilter) (store.LimitView, error) {
	if f.Text != "" {
		f.Keys = append(f.Keys, store.LimitKey{Limit: "ü"})
	}
	return r.Reader.LimitRows(ctx, f)
}

type doubling struct{ store.Reader }

func (r doubling) Definitions(ctx context.Context) ([]*store.Definition, error) {
	defs, err := r.Reader.Definitions(ctx)
	if len(defs) > 0 {
		defs = append(defs, defs[0])
	}
	return defs, err
}

type cutting struct{ store.Reader }

func (r cutting) Cases(ctx context.Context, f store.CaseFilter) ([]*state.Case, error) {
	cases, err := r.Reader.Cases(ctx, f)
	for _, c := range cases {
		c.Input = c.Input[:min(len(c.Input), 1<<16)]
	}
	return cases, err
}

type slow struct{ store.Reader }

func (r slow) Cases(ctx context.Context, f store.CaseFilter) ([]*state.Case, error) {
	cases, err := r.Reader.Cases(ctx, f)
	for _, c := range cases {
		c.Created = c.Created.Truncate(time.Second)
	}
	return cases, err
}

type american struct{ store.Reader }

func (r american) Items(ctx context.Context, f store.ItemFilter) ([]*store.ItemRow, error) {
	items, err := r.Reader.Items(ctx, f)
	for _, it := range items {
		if it.Failure != nil {
			changed := *it.Failure
			changed.Message = strings.Map(func(r rune) rune { return min(r, 127) }, changed.Message)
			it.Failure = &changed
		}
	}
	return items, err
}
