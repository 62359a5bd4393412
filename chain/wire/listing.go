package wire

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
	sessionsv1 "github.com/tally-network/tally/gen/tally/sessions/v1"
)

// ListingsToProto returns listings as transactions carry them: by model.
func ListingsToProto(listings []session.Listing) []sessionsv1.Listing {
	out := list(listings, listingToProto)
	slices.SortStableFunc(out, func(x, y sessionsv1.Listing) int { return bytes.Compare(x.Model, y.Model) })
	return out
}

func listingToProto(l session.Listing) sessionsv1.Listing {
	return sessionsv1.Listing{
		Model: bytes.Clone(l.Model[:]), Name: l.Name, Prices: sessionsv1.Prices(l.Prices),
		Credit:  sessionsv1.Credit{First: l.Credit.First, GrowthBps: l.Credit.GrowthBps, Cap: l.Credit.Cap},
		Context: l.Context, Parallel: l.Parallel, MinCheckBps: l.MinCheckBps,
	}
}

// ListingsFromProto is the inverse of ListingsToProto, and checks each. A provider lists a model once.
func ListingsFromProto(ms []sessionsv1.Listing) ([]session.Listing, error) {
	if err := tooMany(len(ms), session.MaxListings, "listings"); err != nil {
		return nil, err
	}
	out := make([]session.Listing, len(ms))
	for i := range ms {
		var err error
		if out[i], err = listingFromProto(&ms[i]); err != nil {
			return nil, fmt.Errorf("listing %d: %w", i, err)
		}
		if i > 0 && bytes.Compare(out[i-1].Model[:], out[i].Model[:]) >= 0 {
			return nil, fmt.Errorf("listing %d is of model %s: list models in the order of their bytes, each once", i, out[i].Model)
		}
	}
	return out, nil
}

func listingFromProto(m *sessionsv1.Listing) (l session.Listing, err error) {
	l = session.Listing{
		Name: m.Name, Prices: session.Prices(m.Prices),
		Credit:  session.Credit{First: m.Credit.First, GrowthBps: m.Credit.GrowthBps, Cap: m.Credit.Cap},
		Context: m.Context, Parallel: m.Parallel, MinCheckBps: m.MinCheckBps,
	}
	if l.Model, err = canon.HashOf(m.Model); err != nil {
		return l, fmt.Errorf("model: %w", err)
	}
	return l, l.Check()
}

// Listed is a listing that stands, and what one must know to take it up.
type Listed struct {
	session.Listing
	Provider string   // account
	PeerKey  []byte   // ed25519: its libp2p identity, and what signs its terms and receipts
	Addrs    []string // multiaddrs of its peer
	Until    int64    // protocol time in ms from which it stands no more
	Free     uint64   // utally of stake that the provider can reserve for sessions
	Record   sessionsv1.Record
}

// ListedFromProto reads a listing that a query has shown.
func ListedFromProto(m *sessionsv1.Listed) (Listed, error) {
	l, err := listingFromProto(&m.Listing)
	if err == nil {
		err = tooMany(len(m.Addrs), MaxAddrs, "addrs")
	}
	return Listed{
		Listing: l, Provider: m.Provider, PeerKey: m.PeerKey, Addrs: m.Addrs, Until: m.UntilMs, Free: m.Free, Record: m.Record,
	}, err
}
