package provide

import (
	"cmp"
	"slices"
	"sync"

	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
)

// byHand knows which tiers somebody has changed by hand while this process runs: what is on sale there is left as it is. The
// chain counts how often the account has said what it sells. So what clearings take off is not mistaken for a person's word.
type byHand struct {
	mu    sync.Mutex
	known bool            // whether said is right; it is not at first, or after a transaction that may have failed
	said  uint64          // how often the account had said what it sells, by the chain's count
	tiers map[string]bool // that were changed by hand
}

// look takes in what the chain has on sale, and how often the account has said so. It returns what is to be on sale: what is
// wanted, but of tiers that are left alone what is there. changed are the tiers that were changed by hand since the last look.
func (h *byHand) look(on []auctionv1.Lot, said uint64, want []auctionv1.Lot) (sell []auctionv1.Lot, changed []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known && said > h.said {
		changed = h.differing(on, want)
	}
	h.known, h.said = true, said
	for _, l := range want {
		if !h.tiers[l.Tier] {
			sell = append(sell, l)
		}
	}
	for _, l := range on {
		if h.tiers[l.Tier] {
			sell = append(sell, l)
		}
	}
	slices.SortFunc(sell, func(x, y auctionv1.Lot) int { return cmp.Compare(x.Tier, y.Tier) })
	return sell, changed
}

// differing notes the tiers whose lot is not what is wanted, and returns those that are new.
func (h *byHand) differing(on, want []auctionv1.Lot) (changed []string) {
	for _, l := range slices.Concat(on, want) {
		if h.tiers[l.Tier] || slices.Contains(on, l) && slices.Contains(want, l) {
			continue
		}
		if h.tiers == nil {
			h.tiers = map[string]bool{}
		}
		h.tiers[l.Tier] = true
		changed = append(changed, l.Tier)
	}
	return changed
}

// sent notes that this process has said what it sells. If that failed, it may have come through all the same.
func (h *byHand) sent(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said++
	h.known = err == nil
}

// any reports whether some tier is left alone.
func (h *byHand) any() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.tiers) > 0
}

// leftAlone reports whether a tier is left alone.
func (h *byHand) leftAlone(tier string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tiers[tier]
}
