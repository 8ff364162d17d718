package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/store/state"
)

// crowds are the numbers of work items, or of child cases, in one task: what one costs should not depend on it.
var crowds = []int{1000, 4000, 16_000, 64_000}

// crowdSteps measure a task of many items, and one of many child cases, for each size.
func crowdSteps() []step {
	var all []step
	for _, n := range crowds {
		all = append(all,
			step{name: "items-" + strconv.Itoa(n), rare: true, run: func(r job) (metrics, error) {
				return largeCase(r, n, manyItems(n))
			}},
			step{name: "cases-" + strconv.Itoa(n), rare: true, run: func(r job) (metrics, error) {
				return largeCase(r, n, manyCases(n))
			}})
	}
	return all
}

func crowdLines(kind, title string) []line {
	var all []line
	for _, n := range crowds {
		all = append(all, line{fmt.Sprint(kind, "-", n), count(n) + " " + title, tree, full})
	}
	return all
}

func orders(n int) func(context.Context, *activities.Activation) ([]order, error) {
	return func(context.Context, *activities.Activation) ([]order, error) {
		all := make([]order, n)
		for i := range all {
			all[i] = anOrder
		}
		return all, nil
	}
}

func manyItems(n int) *builder.Workflow[order] {
	b := builder.New[order]("many-items")
	b.Path(b.Start(), builder.Task(b, "work", builder.Work[order, receipt]{Run: run, Items: orders(n)}), b.End())
	return b.MustBuild()
}

func manyCases(n int) *builder.Workflow[order] {
	b := builder.New[order]("many-cases")
	b.Path(b.Start(), builder.Composite(b, "work", oneTask, builder.Cases[order]{Items: orders(n)}), b.End())
	return b.MustBuild()
}

// largeCase starts one case whose task has n parts, which 64 workers do.
func largeCase(r job, n int, w *builder.Workflow[order]) (metrics, error) {
	e, err := open(file(r.dir), 64, w)
	if err != nil {
		return nil, err
	}
	before, at := used(), time.Now()
	id, err := w.Start(noTimeout, e, anOrder)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	m := metrics{"start": time.Since(at).Seconds() * 1e6 / float64(n)}
	c, err := e.Wait(noTimeout, id)
	if err == nil && c.State != state.CaseCompleted {
		err = fmt.Errorf("case %s is %s", id, c.State)
	}
	m["all"] = time.Since(at).Seconds() * 1e6 / float64(n)
	m.since(before, float64(n))
	return m, errors.Join(err, e.Close())
}
