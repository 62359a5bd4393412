package module

import (
	"context"
	"time"

	"cosmossdk.io/collections"
	"cosmossdk.io/collections/codec"
)

// A block tries so many again. The delay after which that is done doubles each time,
// between these bounds, in ms.
const (
	maxRetries = 16
	firstDelay = int64(time.Minute / time.Millisecond)
	lastDelay  = int64(24 * time.Hour / time.Millisecond)
)

// Retries is what was due and could not be done: it has left the index of times, so that
// it holds up nothing else, and is tried again after a while, ever more seldom.
type Retries[K any] struct {
	delays collections.Map[collections.Pair[int64, K], int64] // by when it is tried again
}

// Retry is something that is tried again.
type Retry[K any] struct {
	Key K

	at, delay int64 // when it is due, and after what delay, in ms
}

// RetriesOf declares what a module tries again, kept under a prefix of its store.
func RetriesOf[K any](sb *collections.SchemaBuilder, prefix int, key codec.KeyCodec[K]) Retries[K] {
	return Retries[K]{collections.NewMap(sb, collections.NewPrefix(prefix), "late", collections.PairKeyCodec(collections.Int64Key, key), collections.Int64Value)}
}

// Add lets something be tried again for the first time.
func (r Retries[K]) Add(ctx context.Context, key K) error {
	return r.Again(ctx, Retry[K]{Key: key})
}

// Again lets something that was tried again be tried once more.
func (r Retries[K]) Again(ctx context.Context, t Retry[K]) error {
	if err := r.Done(ctx, t); err != nil {
		return err
	}
	delay := min(max(2*t.delay, firstDelay), lastDelay)
	return r.delays.Set(ctx, collections.Join(Now(ctx)+delay, t.Key), delay)
}

// Done forgets something that was tried again.
func (r Retries[K]) Done(ctx context.Context, t Retry[K]) error {
	return r.delays.Remove(ctx, collections.Join(t.at, t.Key))
}

// Due returns what is to be tried again in this block, the longest due first.
func (r Retries[K]) Due(ctx context.Context) (out []Retry[K], err error) {
	err = r.delays.Walk(ctx, collections.NewPrefixUntilPairRange[int64, K](Now(ctx)), func(at collections.Pair[int64, K], delay int64) (bool, error) {
		out = append(out, Retry[K]{at.K2(), at.K1(), delay})
		return len(out) == maxRetries, nil
	})
	return out, err
}

// Keys hands everything that is tried again to f.
func (r Retries[K]) Keys(ctx context.Context, f func(K)) error {
	return r.delays.Walk(ctx, nil, func(at collections.Pair[int64, K], _ int64) (bool, error) {
		f(at.K2())
		return false, nil
	})
}
