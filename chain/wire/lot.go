package wire

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/core/match"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
)

var lotText = regexp.MustCompile(`^([^:@]{1,32}):([0-9]{1,19})@([0-9]{1,19})$`)

// ParseLot reads capacity for sale, written like C:5000@800: tier, GFLOP, and the least price of one in utally, 0
// if that is sealed.
func ParseLot(text string) (l auctionv1.Lot, err error) {
	m := lotText.FindStringSubmatch(text)
	if m == nil {
		return l, fmt.Errorf("%.60q sells nothing: write it like C:5000@800, which are tier, GFLOP, and the least price of one in utally", text)
	}
	l.Tier = m[1]
	l.Units, _ = strconv.ParseUint(m[2], 10, 64) // 19 digits fit
	l.Ask, _ = strconv.ParseUint(m[3], 10, 64)
	if l.Units < 1 || l.Units > auction.MaxUnits || l.Ask > auction.MaxAsk {
		return l, fmt.Errorf("%q: GFLOP and price are from 1 to %d, or the price is 0 if it is sealed", text, uint64(auction.MaxUnits))
	}
	return l, nil
}

// ParseLots reads lots of several tiers, each once, and returns them in order.
func ParseLots(texts []string) (out []auctionv1.Lot, err error) {
	for _, text := range texts {
		l, err := ParseLot(text)
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(x, y auctionv1.Lot) int { return cmp.Compare(x.Tier, y.Tier) })
	for i := range out {
		if i > 0 && out[i].Tier == out[i-1].Tier {
			return nil, fmt.Errorf("tier %s is named twice: sell one lot of it", out[i].Tier)
		}
	}
	if len(out) > auction.Kinds {
		return nil, fmt.Errorf("%d lots, a provider sells at most %d", len(out), auction.Kinds)
	}
	return out, nil
}

// CheckLot returns an error unless a provider may have a lot on sale. It was measured at so many FLOP/s, and has so many GFLOP of
// other lots on sale.
func CheckLot(l auctionv1.Lot, others, speed uint64, tiers match.Tiers) error {
	least, err := tiers.Least(l.Tier)
	if err != nil {
		return err
	}
	if speed < least {
		return fmt.Errorf("tier %s takes %d GFLOP/s, and the provider was measured at %d: sell in tier %s", l.Tier, least/1e9, speed/1e9, tiers.Of(speed))
	}
	if most := auction.Sellable(speed); l.Units > most || others > most-l.Units {
		return fmt.Errorf("%d GFLOP of tier %s, beside %d of others: at the speed that the provider was measured at it may sell %d GFLOP at once, of all tiers together", l.Units, l.Tier, others, most)
	}
	return nil
}

// LotText is the inverse of ParseLot.
func LotText(l auctionv1.Lot) string { return fmt.Sprintf("%s:%d@%d", l.Tier, l.Units, l.Ask) }

// LotsText says for people what is on sale.
func LotsText(lots []auctionv1.Lot) string {
	var texts []string
	for _, l := range lots {
		price := fmt.Sprintf("%d utally each or more", l.Ask)
		if l.Ask == 0 {
			price = "a sealed price"
		}
		texts = append(texts, fmt.Sprintf("%d GFLOP of tier %s for %s", l.Units, l.Tier, price))
	}
	return cmp.Or(strings.Join(texts, ", "), "nothing")
}
