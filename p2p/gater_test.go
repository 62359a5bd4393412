package p2p

import (
	"sync/atomic"
	"testing"

	ma "github.com/multiformats/go-multiaddr"
)

func TestOnlyAllowedAddressesAreDialled(t *testing.T) {
	to := newHost(t, 1)
	var asked atomic.Int64
	from, err := New(Options{Key: keyOf(2), MayDial: func(ma.Multiaddr) bool { asked.Add(1); return false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = from.Close() })
	if err := from.SetAddrs(to.ID(), to.Addrs()); err != nil {
		t.Fatal(err)
	}
	if err := from.Connect(t.Context(), to.ID()); err == nil || asked.Load() == 0 {
		t.Errorf("%v, of %d addresses", err, asked.Load())
	}
}
