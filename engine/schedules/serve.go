package schedules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workflow"
)

// Report says what [Schedules.Serve] did with the schedules that the program declares.
type Report struct {
	Added, Updated []string
	// Vanished are schedules that a program has declared, and this one does not: they go on. Remove them, or declare them again.
	Vanished []string
}

// atOnce is how many commands of Serve are under way at a time, so that they share commits.
const atOnce = 256

// Serve gives the engine that runs the schedules, and brings those that the program declares into its database: one that is not
// there is added, one whose declaration has changed is updated, and keeps its pause and what it has run. What was changed at
// run time stays as long as the declaration does. Call it once, after the engine was opened. The error joins those of all
// schedules that cannot be.
func (s *Schedules) Serve(ctx context.Context, e Engine) (Report, error) {
	s.mu.Lock()
	s.engine = e
	s.mu.Unlock()
	var r Report
	known := make(map[string]*Info)
	for i, err := range all(ctx, e, store.CaseFilter{}) { // the latest case of each is the last one
		if err != nil {
			return r, fmt.Errorf("read the schedules: %w", err)
		}
		known[i.Schedule.Name] = i
	}
	for _, i := range known {
		if i.live() {
			s.watch(i.Case, &i.State)
		}
	}
	changed, err := s.compare(known, &r)
	if err != nil {
		return r, err
	}
	var wg sync.WaitGroup
	errs, slots := make([]error, len(changed)), make(chan struct{}, atOnce)
	for n, d := range changed {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			_, err := add(ctx, e, d, hashOf(d), known[d.Schedule.Name], []workflow.Option{workflow.By("program"), workflow.Because("declared in code")})
			if errors.Is(err, workflow.ErrUnknown) { // that of schedules; what a schedule starts is looked for at its ticks
				err = fmt.Errorf("schedule %q: %w: give the Schedules to engine.Open, too, as a definition", d.Schedule.Name, err)
			}
			errs[n] = err
		})
	}
	wg.Wait()
	return r, errors.Join(errs...)
}

// compare lists the declarations that differ from what is stored, and notes what they are.
func (s *Schedules) compare(known map[string]*Info, r *Report) (changed []workflow.Scheduled, err error) {
	declared := make(map[string]bool, len(s.declared))
	for _, d := range s.declared {
		name := d.Schedule.Name
		if declared[name] {
			err = errors.Join(err, fmt.Errorf("there are two schedules named %q: give each its own name", name))
		}
		declared[name] = true
		err = errors.Join(err, d.Check())
		switch there := known[name]; {
		case there == nil || !there.live():
			r.Added = append(r.Added, name)
		case there.Declared != hashOf(d):
			r.Updated = append(r.Updated, name)
		default:
			continue
		}
		changed = append(changed, d)
	}
	for name, there := range known {
		if there.live() && there.Declared != "" && !declared[name] {
			r.Vanished = append(r.Vanished, name)
		}
	}
	slices.Sort(r.Vanished)
	return changed, err
}
