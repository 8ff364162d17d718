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

// Report is what [Schedules.Serve] did with the declared schedules.
type Report struct {
	Added, Updated []string
	// Vanished are schedules that an earlier program declared and this one does not. They stay active. Remove them, or
	// declare them again.
	Vanished []string
}

// atOnce is how many commands of Serve run concurrently, so that they share commits.
const atOnce = 256

// Serve connects the schedules to the engine, and applies the declarations of the program to its database: a new
// schedule is added; one whose declaration has changed is updated, and keeps its pause and its runs. Changes at run
// time remain as long as the declaration is the same. Call it once, after opening the engine. The error joins those of
// all schedules that fail.
func (s *Schedules) Serve(ctx context.Context, e Engine) (r Report, err error) {
	s.mu.Lock()
	s.engine = e
	s.mu.Unlock()
	known, err := latest(ctx, e)
	if err != nil {
		return r, err
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
	// A command is late if a tick, or another program that declares the same schedules, comes first. Then all schedules are
	// read again, once for all late commands.
	for range tries {
		var late bool
		if late, err = s.declare(ctx, e, changed, known); !late {
			break
		}
		var failed error
		if known, failed = latest(ctx, e); failed != nil {
			return r, failed
		}
		if changed, failed = s.compare(known, &Report{}); failed != nil {
			return r, failed
		}
	}
	return r, err
}

// latest returns the latest case of each schedule, by name.
func latest(ctx context.Context, e Engine) (map[string]*Info, error) {
	known := make(map[string]*Info)
	for i, err := range all(ctx, e, store.CaseFilter{}) { // in the order of their creation
		if err != nil {
			return nil, fmt.Errorf("read the schedules: %w", err)
		}
		known[i.Schedule.Name] = i
	}
	return known, nil
}

// declare adds or updates schedules, and reports whether a command was late. The error joins those of all that fail.
func (s *Schedules) declare(ctx context.Context, e Engine, changed []workflow.Scheduled, known map[string]*Info) (late bool, err error) {
	var wg sync.WaitGroup
	errs, slots := make([]error, len(changed)), make(chan struct{}, atOnce)
	for n, d := range changed {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[n] = declareOne(ctx, e, d, known[d.Schedule.Name])
		})
	}
	wg.Wait()
	return slices.ContainsFunc(errs, isLate), errors.Join(errs...)
}

// declareOne adds or updates a schedule; known is its latest case, or nil.
func declareOne(ctx context.Context, e Engine, d workflow.Scheduled, known *Info) error {
	c, err := addTo(known, d, now(e), []workflow.Option{workflow.By("program"), workflow.Because("declared in code")})
	if err != nil {
		return err
	}
	_, err = e.Do(ctx, withHash(c, hashOf(d)))
	if errors.Is(err, workflow.ErrUnknown) { // the workflow of schedules; that of a start is looked up at its ticks
		err = fmt.Errorf("schedule %q: %w: give the Schedules to engine.Open, too, as a definition", d.Schedule.Name, err)
	}
	return err
}

// compare returns the declarations that differ from the stored ones, and adds them to the report.
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
