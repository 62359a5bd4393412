// Package blobs fetches and keeps the files of orders, and hands them to those who may
// have them.
//
// Make an [Exchange]. [Exchange.Fetch] brings a file of a lease here and pins it for the
// lease; [Exchange.Serve] lets the lease's parties have what is here; [Exchange.Forget]
// lets go of all of it.
//
// Invariant: what is here for one order is never handed over, nor taken, for another.
//
// Source: docs/adr/0007-consumer-hands-over.md; p2p has the protocol.
package blobs

import (
	"errors"
	"log/slog"
	"strings"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/node/peers"
	"github.com/tally-network/tally/p2p"
	"github.com/tally-network/tally/store"
)

// Exchange fetches and serves the blobs of one role's leases.
type Exchange struct {
	Me    string // the role's account
	Store *store.Store
	Host  *p2p.Host
	Peers *peers.Directory
	Log   *slog.Logger

	readers readers
	conduct conduct
}

// Orders returns the orders for which there are blobs here.
func (x *Exchange) Orders() (out []canon.Hash, err error) {
	for _, pin := range x.Store.Pins() {
		if hex, ok := strings.CutPrefix(pin, pinPrefix); ok {
			id, err := canon.ParseHash(hex)
			if err != nil {
				return nil, err
			}
			out = append(out, id)
		}
	}
	return out, nil
}

// Forget lets go of the blobs of a lease, and of who gave wrong ones.
func (x *Exchange) Forget(order canon.Hash) error {
	x.conduct.forget(order)
	if err := errors.Join(x.Store.Unpin(Pin(order)), x.Store.Unpin(ListPin(order))); err != nil {
		return err
	}
	_, err := x.Store.GC()
	return err
}
