package adversary

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

// Report is what a search came to.
type Report struct {
	Histories, Messages int
	Found               map[string]*Finding // the first of each class
}

// Search plays the histories of the seeds from first on, on all processors, until so
// many messages were sent. It calls tell with what it finds, and every ten seconds.
func Search(ctx context.Context, first uint64, messages int, tell func(format string, args ...any)) (Report, error) {
	var mu sync.Mutex
	r, next, told := Report{Found: map[string]*Finding{}}, first, time.Now()
	take := func() (seed uint64, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1, r.Messages < messages && ctx.Err() == nil
	}
	note := func(seed uint64, f *Finding, sent int) {
		mu.Lock()
		defer mu.Unlock()
		r.Histories++
		r.Messages += sent
		if f != nil && r.Found[Class(f)] == nil {
			r.Found[Class(f)] = f
			tell("seed %d: %v", seed, f)
		}
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			tell("%d histories of %d messages, %d findings", r.Histories, r.Messages, len(r.Found))
		}
	}
	err := everywhere(ctx, func(w worlds) {
		for seed, ok := take(); ok; seed, ok = take() {
			f, sent := w.of(seed).Attack(seed)
			note(seed, f, sent)
		}
	})
	return r, err
}

// worlds are one of each kind.
type worlds map[Kind]*World

func newWorlds(tb testing.TB) worlds {
	all := worlds{}
	for _, k := range kindsOfWorld {
		all[k] = NewWorld(tb, k)
	}
	return all
}

// of returns the world in which a seed's history is played.
func (w worlds) of(seed uint64) *World { return w[kindsOfWorld[seed%uint64(len(kindsOfWorld))]] }

// everywhere lets f play in worlds of its own on every processor.
func everywhere(ctx context.Context, f func(worlds)) error {
	errs := make(chan error)
	for range runtime.GOMAXPROCS(0) {
		go func() { errs <- outside(ctx, func(tb testing.TB) { f(newWorlds(tb)) }) }()
	}
	var first error
	for range runtime.GOMAXPROCS(0) {
		if err := <-errs; first == nil {
			first = err
		}
	}
	if first == nil {
		first = ctx.Err()
	}
	return first
}

// outside calls f with what stands for a test where there is none. What would fail
// the test ends f with an error.
func outside(ctx context.Context, f func(testing.TB)) (err error) {
	type failed struct{ error }
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failed:
			err = r.error
		default:
			panic(r)
		}
	}()
	f(&noTest{ctx: ctx, fail: func(err error) { panic(failed{err}) }})
	return nil
}

// noTest has those methods of a test that worlds call.
type noTest struct {
	testing.TB
	ctx  context.Context
	fail func(error)
}

func (t *noTest) Helper()                           {}
func (t *noTest) Name() string                      { return "" }
func (t *noTest) Context() context.Context          { return t.ctx }
func (t *noTest) Logf(string, ...any)               {}
func (t *noTest) Error(args ...any)                 { t.Fatal(args...) }
func (t *noTest) Errorf(format string, args ...any) { t.Fatalf(format, args...) }
func (t *noTest) Fatal(args ...any)                 { t.fail(fmt.Errorf("%s", fmt.Sprint(args...))) }
func (t *noTest) Fatalf(format string, args ...any) { t.fail(fmt.Errorf(format, args...)) }
