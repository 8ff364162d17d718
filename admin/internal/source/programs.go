package source

import (
	"context"
	"sync"
	"time"

	"github.com/tasq-dev/tasq/engine/why"
)

const (
	keepHere = 10 * time.Second // how long an answer of open programs is used
	maxAsk   = 2 * time.Second  // how long a page waits for it
)

// programs caches what the programs that have the database open tell of their definitions.
type programs struct {
	ask func(context.Context) (why.Here, error) // nil if they are not asked

	mu    sync.Mutex
	asked time.Time
	last  why.Here
}

// here returns what the programs tell, at most keepHere old. An error is no answer: then nothing is known.
func (p *programs) here(now time.Time) why.Here {
	if p.ask == nil {
		return why.Here{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if age := now.Sub(p.asked); !p.asked.IsZero() && age >= 0 && age < keepHere {
		return p.last
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxAsk) // the answer is for all pages
	defer cancel()
	here, err := p.ask(ctx)
	if err != nil {
		here = why.Here{}
	}
	p.asked, p.last = now, here
	return here
}
