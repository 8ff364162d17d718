package step

import "context"

// Yield gives the worker of the job back where it is wanted: the engine closes, the hours of the function are over, or its queue is
// paused. It returns [ErrYielded] then, which the function is to return at once, wrapped or not. The job is due again, by any engine
// that may do it, and the function is called from its first line; what its steps have done is not done twice, and the attempt does not
// count. If the worker is not needed elsewhere, it returns nil at once, and nothing is recorded.
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
// A function that does not yield is waited for when the engine closes, for its Grace. In the function of a step it is an error that
// wraps [ErrUsage]; outside a job it is one that wraps [ErrNoJob].
func Yield(ctx context.Context) error {
	s := scopeOf(ctx)
	if s == nil {
		return ErrNoJob
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
