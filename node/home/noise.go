package home

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
)

// CometBFT calls it an error when somebody hangs up. In these of its parts that
// is daily life, and in all of them while the node stops.
var noisy = []string{"rpc", "p2p", "pex", "blocksync"}

// quiet turns such errors of a node into information.
type quiet struct {
	slog.Handler
	noisy    bool
	stopping *atomic.Bool
}

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return q.Handler.Enabled(ctx, q.level(l))
}

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if r.Level = q.level(r.Level); !q.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	q.noisy = q.noisy || slices.ContainsFunc(attrs, func(a slog.Attr) bool {
		return a.Key == "module" && slices.Contains(noisy, a.Value.String())
	})
	q.Handler = q.Handler.WithAttrs(attrs)
	return q
}

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler {
	q.Handler = q.Handler.WithGroup(name)
	return q
}

func (q quiet) level(l slog.Level) slog.Level {
	if l == slog.LevelError && (q.noisy || q.stopping.Load()) {
		return slog.LevelInfo
	}
	return l
}
