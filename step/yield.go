package step

import "context"

// Yield releases the worker of the job if the engine wants it back: because the engine closes, the hours of the function are over, its
// queue is paused, or its case is suspended. It then returns ErrYielded, which the function must return at once, wrapped or not. The job becomes due again
// for any engine, and the function is called from its first line; completed steps are not repeated, and the attempt does not count. If
// the worker is not wanted back, Yield returns nil at once, and nothing is recorded.
//
//	for i, mail := range mails {
//		if err := step.Yield(ctx); err != nil {
//			return err
//		}
//		if _, err := step.Do(ctx, fmt.Sprint("mail ", i), send(mail)); err != nil {
//			return err
//		}
//	}
//
// When the engine closes, it waits for functions that do not yield for the time Config.Grace. Within the function of a step the error
// wraps ErrUsage; outside a job it wraps ErrNoJob.
func Yield(ctx context.Context) error {
	s := scopeOf(ctx)
	if s == nil {
		return outside(title{word: "step.Yield"})
	}
	r := s.run
	if s.inside != "" {
		return r.misuse("Yield is called in the function of step %q; call it between steps", s.inside)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.halted(ctx, s.branch); err != nil {
		return err
	}
	if r.info.Yield == nil || !r.info.Yield() {
		return nil
	}
	r.stop(ErrYielded)
	return ErrYielded
}
