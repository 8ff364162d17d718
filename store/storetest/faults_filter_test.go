package storetest_test

import (
	"context"
	"reflect"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// filterFaults are stores that ignore one field of a filter each: there is one for every field that a filter has.
func filterFaults() (all []fault) {
	for _, f := range []struct {
		filter any
		rule   string
	}{
		{store.CaseFilter{}, "case-filter"}, {store.ItemFilter{}, "item-filter"}, {store.JobFilter{}, "job-filter"},
		{store.StepFilter{}, "step-filter"}, {store.MessageFilter{}, "message-filter"}, {store.JournalFilter{}, "journal-filter"},
		{store.RateFilter{}, "ended"},
	} {
		kind := reflect.TypeOf(f.filter)
		for i := range kind.NumField() {
			name, rule := kind.Field(i).Name, f.rule
			switch name {
			case "Page", "Settled": // a rule of several stores is about the second
				continue
			case "Removable":
				rule = "removable"
			}
			all = append(all, fault{name: kind.Name() + " ignores " + name, rule: rule, wrap: inView(ignoring(kind.Name(), i))})
		}
	}
	for _, kind := range []string{"CaseFilter", "ItemFilter", "JobFilter", "StepFilter", "MessageFilter"} {
		page := reflect.TypeOf(store.Page{})
		for i := range page.NumField() {
			all = append(all, fault{
				name: kind + " ignores " + page.Field(i).Name, rule: "pages", wrap: inView(ignoring(kind, 0, i)),
			})
		}
	}
	return all
}

// deaf is a reader that clears a field of one kind of filters before it asks.
type deaf struct {
	store.Reader
	kind  string
	field []int
}

func ignoring(kind string, field ...int) func(store.Reader) store.Reader {
	return func(r store.Reader) store.Reader { return deaf{r, kind, field} }
}

func (d deaf) Ended(ctx context.Context, f store.RateFilter) ([]store.Ended, error) {
	return d.Reader.Ended(ctx, without(d, f))
}

// without clears the field of a filter, if it is of the kind.
func without[F any](d deaf, f F) F {
	v := reflect.ValueOf(&f).Elem()
	if v.Type().Name() == d.kind {
		v.FieldByIndex(d.field).SetZero()
	}
	return f
}

// Cases implements store.Reader, as do the methods below.
func (d deaf) Cases(ctx context.Context, f store.CaseFilter) ([]*state.Case, error) {
	return d.Reader.Cases(ctx, without(d, f))
}

func (d deaf) Items(ctx context.Context, f store.ItemFilter) ([]*store.ItemRow, error) {
	return d.Reader.Items(ctx, without(d, f))
}

func (d deaf) Jobs(ctx context.Context, f store.JobFilter) ([]*state.Job, error) {
	return d.Reader.Jobs(ctx, without(d, f))
}

func (d deaf) Steps(ctx context.Context, f store.StepFilter) ([]*workitem.Step, error) {
	return d.Reader.Steps(ctx, without(d, f))
}

func (d deaf) Messages(ctx context.Context, f store.MessageFilter) ([]*state.Message, error) {
	return d.Reader.Messages(ctx, without(d, f))
}

func (d deaf) Journal(ctx context.Context, f store.JournalFilter) ([]*store.Entry, error) {
	return d.Reader.Journal(ctx, without(d, f))
}
