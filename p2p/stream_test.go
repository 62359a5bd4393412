package p2p

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

var counting = Streaming{ID: "/test/counting", MaxRequest: 64, MaxMessage: 1 << 10, Silence: 10 * time.Second, Timeout: 20 * time.Second, PerPeer: 2, Answers: 8}

// all reads an answer to its end.
func all(r *Replies) (got []string, err error) {
	for {
		m, err := r.Next()
		if err != nil {
			return got, err
		}
		got = append(got, string(m))
	}
}

func TestMessagesComeInTheirOrder(t *testing.T) {
	for name, listen := range transports {
		t.Run(name, func(t *testing.T) {
			a, b := newHost(t, 1, listen), newHost(t, 2, listen)
			know(t, a, b)
			var want []string
			for i := range 300 {
				want = append(want, fmt.Sprint(i)+strings.Repeat(".", i))
			}
			counting.Handle(b, func(_ context.Context, from peer.ID, q []byte, out *Answer) error {
				if from != a.ID() || string(q) != "count" {
					return errors.New("who asks what?")
				}
				for _, m := range want {
					if err := out.Send([]byte(m)); err != nil {
						return err
					}
				}
				return nil
			})
			r, err := counting.Call(soon(t), a, b.ID(), []byte("count"))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if got, err := all(r); !errors.Is(err, io.EOF) || !slices.Equal(got, want) {
				t.Errorf("%d messages came, and then %v", len(got), err)
			}
		})
	}
}

// An answer says how it ends, after what it has said.
func TestHowAnswersEnd(t *testing.T) {
	a, b := newHost(t, 1), newHost(t, 2)
	know(t, a, b)
	counting.Handle(b, func(_ context.Context, _ peer.ID, q []byte, out *Answer) error {
		if err := out.Send([]byte("one")); err != nil {
			return err
		}
		switch string(q) {
		case "refuse":
			return ErrRefused
		case "busy":
			return ErrBusy
		case "fail":
			return errors.New("no such model")
		case "long":
			return out.Send(make([]byte, counting.MaxMessage+1))
		}
		return nil
	})
	for q, want := range map[string]string{"": "EOF", "refuse": ErrRefused.Error(), "busy": ErrBusy.Error(), "fail": "no such model", "long": "the limit is 1024"} {
		r, err := counting.Call(soon(t), a, b.ID(), []byte(q))
		if err != nil {
			t.Fatal(err)
		}
		got, err := all(r)
		r.Close()
		r.Close()
		if !slices.Equal(got, []string{"one"}) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, and then %v", q, got, err)
		}
	}
	if _, err := counting.Call(soon(t), a, b.ID(), make([]byte, counting.MaxRequest+1)); err == nil {
		t.Error("a request is sent that is too long")
	}
}

// Who wants no more still hears what is left; who leaves ends the work.
func TestEnoughAndGone(t *testing.T) {
	a, b := newHost(t, 1), newHost(t, 2)
	know(t, a, b)
	var working atomic.Int32
	counting.Handle(b, func(ctx context.Context, _ peer.ID, _ []byte, out *Answer) error {
		working.Add(1)
		defer working.Add(-1)
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-out.Enough:
				return out.Send([]byte("bill"))
			case <-time.After(time.Millisecond):
				if err := out.Send([]byte("more")); err != nil {
					return err
				}
			}
		}
	})
	r, err := counting.Call(soon(t), a, b.ID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if m, err := r.Next(); err != nil || string(m) != "more" {
			t.Fatalf("%q, %v", m, err)
		}
	}
	if err := r.Enough(); err != nil {
		t.Fatal(err)
	}
	if got, err := all(r); !errors.Is(err, io.EOF) || len(got) == 0 || got[len(got)-1] != "bill" {
		t.Errorf("after enough came %q, %v", got, err)
	}
	r.Close()

	ctx, leave := context.WithCancel(soon(t))
	if r, err = counting.Call(ctx, a, b.ID(), nil); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	leave()
	if _, err := all(r); !errors.Is(err, context.Canceled) {
		t.Errorf("who left hears %v", err)
	}
	until(t, "nobody works for who is gone", func() bool { return working.Load() == 0 })
}

// A peer gets no more answers at once than it may, nor do all together.
func TestAnswersAreBounded(t *testing.T) {
	p := counting
	p.Answers, p.PerPeer = 3, 1
	at := newHost(t, 1)
	open := make(chan struct{})
	p.Handle(at, func(ctx context.Context, _ peer.ID, _ []byte, out *Answer) error {
		if err := out.Send([]byte("in")); err != nil {
			return err
		}
		select {
		case <-open:
		case <-ctx.Done():
		}
		return nil
	})
	in := 0
	for n := range byte(2) {
		greedy := newHost(t, 2+n)
		know(t, greedy, at)
		p := p
		p.PerPeer = 8 // its own bound it can lift
		for range 3 {
			r, err := p.Call(soon(t), greedy, at.ID(), nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(r.Close)
			switch m, err := r.Next(); {
			case err == nil && string(m) == "in":
				in++
			case !errors.Is(err, ErrBusy):
				t.Errorf("%q, %v: want that it is busy", m, err)
			}
		}
		if most := []int{2, 3}[n]; in != most {
			t.Errorf("%d answers are under way with %d peers: want %d", in, n+1, most)
		}
	}
	close(open)
}

// Peers that keep to no rule hold nothing up, and lead to no panic.
func TestHostileStreams(t *testing.T) {
	a, b := newHost(t, 1), newHost(t, 2)
	b.patience = 500 * time.Millisecond
	var began, ended atomic.Int32
	counting.Handle(b, func(ctx context.Context, _ peer.ID, _ []byte, out *Answer) error {
		began.Add(1)
		defer ended.Add(1)
		<-ctx.Done()
		return ctx.Err()
	})
	long := binary.BigEndian.AppendUint32(nil, uint32(counting.MaxRequest+1))
	for name, bytes := range map[string][]byte{"a length above the limit": long, "a request that breaks off": {0, 0, 0, 9, 1}, "nothing": nil} {
		s := openRaw(t, a, b, counting.ID)
		if len(bytes) > 0 {
			if _, err := s.Write(bytes); err != nil {
				t.Fatal(err)
			}
		} else if _, err := s.Write([]byte{0}); err != nil { // which opens it
			t.Fatal(err)
		}
		t.Log(name)
		wantReset(t, s)
	}
	if began.Load() != 0 {
		t.Error("a handler has begun")
	}
	s := openRaw(t, a, b, counting.ID)
	if _, err := s.Write([]byte{0, 0, 0, 0, 'x'}); err != nil { // who says more than the request is turned away
		t.Fatal(err)
	}
	wantReset(t, s)
	until(t, "the handler has ended", func() bool { return began.Load() == 1 && ended.Load() == 1 })
}

// A peer that says nothing for too long is given up.
func TestSilentAnswer(t *testing.T) {
	a, b := newHost(t, 1), newHost(t, 2)
	know(t, a, b)
	counting.Handle(b, func(ctx context.Context, _ peer.ID, _ []byte, out *Answer) error {
		<-ctx.Done()
		return nil
	})
	p := counting
	p.Silence = 200 * time.Millisecond
	r, err := p.Call(soon(t), a, b.ID(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Next(); err == nil {
		t.Error("silence is taken for an answer")
	}
}
