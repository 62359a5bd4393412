package gateway

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tally-network/tally/gateway/api"
)

// All bodies together take no more than there is room for, and give it back.
func TestBodiesTakeTheirRoom(t *testing.T) {
	q := newQueue(1, 1, time.Second)
	if !q.bodies.TryAcquire(maxBodies - 2*bodyStep) {
		t.Fatal("there is no room to begin with")
	}
	hold := func(bytes int) *body { return q.hold(io.NopCloser(strings.NewReader(strings.Repeat("x", bytes)))) }
	first, second := hold(bodyStep+1), hold(1)
	if text, err := io.ReadAll(first); err != nil || len(text) != bodyStep+1 {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	var f *api.Fault
	if _, err := io.ReadAll(second); !errors.As(err, &f) || f.Status != http.StatusServiceUnavailable || f.Retry == 0 {
		t.Errorf("%v while there is no room", err)
	}
	first.release()
	if text, err := io.ReadAll(second); err != nil || len(text) != 1 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	second.release()
	if !q.bodies.TryAcquire(2 * bodyStep) {
		t.Error("some room was not given back")
	}
}
