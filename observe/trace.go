package observe

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// header is what a case keeps of a span: traceparent of W3C Trace Context.
const header = "traceparent"

// inject returns the text of the span of a context; "" if there is none.
func inject(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[header]
}

// extract makes the span of a text the parent of what is started with the context. A text that is none changes nothing.
func extract(ctx context.Context, text string) context.Context {
	if text == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{header: text})
}

// fail marks a span as one that ended with an error.
func fail(span trace.Span, err error, code string) {
	if err == nil {
		return
	}
	span.RecordError(err)
	span.SetStatus(codes.Error, err.Error())
	span.SetAttributes(attribute.String("tasq.code", code))
}
