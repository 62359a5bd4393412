package parts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Offer is a validator's that would take a part.
type Offer struct {
	Validator string
	Owner     string // as declared; the validator itself if it has declared none
	Price     uint64 // utally, the most that the part can cost there
	Last      bool   // taken only if no other can be: an order for the part has failed there
}

// ShortError says that too few owners of validators would take parts.
type ShortError struct {
	Part, Parts int // the first for which nobody is left, counted from 0
	Takers      int // owners of offers that would take this part
	Owners      int // likewise, one of the parts
}

func (e *ShortError) Error() string {
	if e.Takers == 0 {
		return fmt.Sprintf("part %d of %d finds no validator: no offer is left that would take it", e.Part+1, e.Parts)
	}
	return fmt.Sprintf("part %d of %d finds no validator: offers of %d owners would take parts, and each part wants another owner: write conditions that more offers meet, a lower split, or wait for more offers", e.Part+1, e.Parts, e.Owners)
}

// Choose returns an offer for each part, each of another owner. offers has what would take each part. Each part in turn gets
// the cheapest whose owner is free. Where there is none, earlier parts make room, if they can go elsewhere.
func Choose(offers [][]Offer) ([]Offer, error) {
	sorted, owners := make([][]Offer, len(offers)), map[string]bool{}
	for i, all := range offers {
		sorted[i] = slices.Clone(all)
		slices.SortFunc(sorted[i], func(a, b Offer) int {
			return cmp.Or(rank(a)-rank(b), cmp.Compare(a.Price, b.Price), strings.Compare(a.Validator, b.Validator))
		})
		for _, o := range all {
			owners[o.Owner] = true
		}
	}
	c := chooser{sorted, make([]Offer, len(offers)), map[string]int{}}
	for part := range offers {
		if !c.place(part, map[string]bool{}) {
			takers := map[string]bool{}
			for _, o := range offers[part] {
				takers[o.Owner] = true
			}
			return nil, &ShortError{part, len(offers), len(takers), len(owners)}
		}
	}
	return c.chosen, nil
}

func rank(o Offer) int {
	if o.Last {
		return 1
	}
	return 0
}

// chooser matches parts with owners, by augmenting paths: it finds a choice wherever there is one.
type chooser struct {
	offers [][]Offer // of each part, the best first
	chosen []Offer
	taken  map[string]int // by owner: the part that it has
}

// place finds an offer for a part. tried are owners that cannot make room.
func (c *chooser) place(part int, tried map[string]bool) bool {
	for _, free := range []bool{true, false} {
		for _, o := range c.offers[part] {
			holder, held := c.taken[o.Owner]
			if held == free || tried[o.Owner] {
				continue
			}
			if held {
				tried[o.Owner] = true
				if !c.place(holder, tried) {
					continue
				}
			}
			c.chosen[part], c.taken[o.Owner] = o, part
			return true
		}
	}
	return false
}
