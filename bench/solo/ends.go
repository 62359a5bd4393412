package solo

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Ends measures the ends of blocks alone, by the span that the SDK gives each: what modules do there,
// without the hash of the state and its commit.
type Ends struct{ last atomic.Int64 } // ns

// MeasureEnds measures the ends of all blocks that this process makes from now on.
var MeasureEnds = sync.OnceValue(func() *Ends { // sync: spans have one destination in a process
	e := &Ends{}
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSampler(only{}), sdktrace.WithSpanProcessor(e)))
	return e
})

// Took returns how long the end of the last block took.
func (e *Ends) Took() time.Duration { return time.Duration(e.last.Swap(0)) }

// OnEnd implements a processor of spans.
func (e *Ends) OnEnd(s sdktrace.ReadOnlySpan) { e.last.Store(int64(s.EndTime().Sub(s.StartTime()))) }

// OnStart implements a processor of spans.
func (*Ends) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// Shutdown implements a processor of spans.
func (*Ends) Shutdown(context.Context) error { return nil }

// ForceFlush implements a processor of spans.
func (*Ends) ForceFlush(context.Context) error { return nil }

// only leaves out all other spans.
type only struct{}

// ShouldSample implements a sampler.
func (only) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	r := sdktrace.SamplingResult{Decision: sdktrace.Drop, Tracestate: trace.SpanContextFromContext(p.ParentContext).TraceState()}
	if p.Name == "endBlock" {
		r.Decision = sdktrace.RecordAndSample
	}
	return r
}

// Description implements a sampler.
func (only) Description() string { return "ends of blocks" }
