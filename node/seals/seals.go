// Package seals bids at auctions whose bids are sealed. It keeps in a home what opens a sealed bid, and what to bid for an order.
//
// [Bidder.Step] bids by itself. By hand, [Dir.Seal] makes a bid and [Dir.Open] reveals it. [Dir.Want] notes what an order bids, and
// [Dir.Wanted] lists what is noted.
//
// Invariants: what opens a bid is on disk before anybody hears of the bid, and is never overwritten. So a restart loses no deposit.
// Who is not running while bids are revealed loses it.
//
// Source: docs/spec/auction.md.
package seals

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/core/canon"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/replace"
)

// Dir is the folder of sealed bids of a home.
type Dir string

// In returns the folder of a home.
func In(home string) Dir { return Dir(filepath.Join(home, "seals")) }

// secret is what opens a sealed bid, as a home keeps it.
type secret struct {
	Clearing uint64 `json:"clearing"`
	Price    uint64 `json:"price_utally"`
	Salt     string `json:"salt"`
}

const (
	ending   = ".json"
	maxFile  = 1 << 10
	maxFiles = 1 << 12 // bids that are kept, and orders that are bid for
)

// Seal returns a sealed bid for an order, or without one for a lot of a tier, once what opens it is kept.
func (d Dir) Seal(chain, bidder string, clearing uint64, order, tier string, price uint64) (*auctionv1.MsgSeal, error) {
	account, err := address.Parse(bidder)
	if err != nil {
		return nil, err
	}
	if price < 1 || price > auction.MaxAsk { // the chain takes it, and could not reveal it
		return nil, fmt.Errorf("a bid of %d utally for a unit: bid from 1 to %d", price, uint64(auction.MaxAsk))
	}
	b := wire.Bid{Chain: chain, Clearing: clearing, Bidder: account, Price: price}
	if order != "" {
		if b.Order, err = canon.ParseHash(order); err != nil {
			return nil, err
		}
	}
	if _, err := rand.Read(b.Salt[:]); err != nil {
		return nil, err
	}
	commitment := b.Commitment()
	if err := write(d.opening(commitment[:]), secret{clearing, price, hex.EncodeToString(b.Salt[:])}); err != nil {
		return nil, fmt.Errorf("keep what opens a sealed bid: %w", err)
	}
	return &auctionv1.MsgSeal{Bidder: bidder, Clearing: clearing, Order: order, Tier: tier, Commitment: commitment[:]}, nil
}

func (d Dir) opening(commitment []byte) string {
	return filepath.Join(string(d), "bids", hex.EncodeToString(commitment)+ending)
}

// Open returns what reveals a bid that this home has sealed, as the chain has it.
func (d Dir) Open(clearing uint64, s *auctionv1.Seal) (*auctionv1.MsgReveal, error) {
	var x secret
	if err := read(d.opening(s.Commitment), &x); err != nil {
		return nil, fmt.Errorf("what opens the sealed bid %x is not in this home; look for it in the home that has sealed it: %w", s.Commitment, err)
	}
	salt, err := hex.DecodeString(x.Salt)
	return &auctionv1.MsgReveal{Bidder: s.Bidder, Clearing: clearing, Order: s.Order, Price: x.Price, Salt: salt}, err
}

// Clean removes what opens bids of clearings before one.
func (d Dir) Clean(clearing uint64) error {
	return d.each("bids", func(name string) error {
		var x secret
		if err := read(name, &x); err != nil || x.Clearing >= clearing {
			return nil // what cannot be read may still be wanted by somebody
		}
		return os.Remove(name)
	})
}

// Want notes that this home bids so many utally for a unit of an order, unless it has noted something of it before.
func (d Dir) Want(order string, price uint64) error {
	name := d.want(order)
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	return write(name, secret{Price: price})
}

func (d Dir) want(order string) string { return filepath.Join(string(d), "orders", order+ending) }

// Wish is what is bid for a unit of an order.
type Wish struct {
	Price uint64    // utally
	Since time.Time // when it was noted
}

// Wanted returns what is bid, by order. An error is about notes that cannot be read; the others are returned with it.
func (d Dir) Wanted() (map[string]Wish, error) {
	out := map[string]Wish{}
	return out, d.each("orders", func(name string) error {
		var x secret
		order := strings.TrimSuffix(filepath.Base(name), ending)
		if _, err := canon.ParseHash(order); err != nil {
			return nil // a file that somebody put there, or is being written
		}
		at, err := os.Stat(name)
		if err == nil {
			err = read(name, &x)
		}
		if err != nil {
			return fmt.Errorf("what is bid for order %.8s: %w; seal by hand with tally tx auction seal-bid, or remove %s", order, err, name)
		}
		out[order] = Wish{x.Price, at.ModTime()}
		return nil
	})
}

// Done forgets what is bid for an order.
func (d Dir) Done(order string) error {
	if err := os.Remove(d.want(order)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// each calls do for each file of a kind.
func (d Dir) each(kind string, do func(name string) error) error {
	folder := filepath.Join(string(d), kind)
	all, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for i, f := range all {
		if i < maxFiles && strings.HasSuffix(f.Name(), ending) {
			err = errors.Join(err, do(filepath.Join(folder, f.Name())))
		}
	}
	return err
}

func write(name string, x secret) error {
	text, err := json.Marshal(x)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return replace.With(name, func(f *os.File) error {
		_, err := f.Write(append(text, '\n'))
		return errors.Join(err, f.Sync()) // a deposit hangs on it
	})
}

func read(name string, into *secret) error {
	text, err := bounded.ReadFile(name, maxFile)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
