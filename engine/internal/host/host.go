// Package host tells a function which engine runs it, so that it can send commands there.
package host

import (
	"context"

	"github.com/tasq-dev/tasq/workflow"
)

type key struct{}

// With returns a context of an engine, from which those of its functions are derived.
func With(ctx context.Context, engine workflow.Doer) context.Context {
	return context.WithValue(ctx, key{}, engine)
}

// Of returns the engine that runs the function with this context; nil if no engine does.
func Of(ctx context.Context) workflow.Doer {
	engine, _ := ctx.Value(key{}).(workflow.Doer)
	return engine
}
