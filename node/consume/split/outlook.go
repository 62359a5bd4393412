package split

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/consume/parts"
)

// Outlook is where an order's parts would go now, and what each and all would cost.
type Outlook struct {
	Parts    []PartOutlook `json:"parts"`
	MaxPrice uint64        `json:"max_price_utally"`
	Price    uint64        `json:"price_utally"`            // of all parts, at most; 0 if a part finds no validator
	Enough   uint64        `json:"enough_utally,omitempty"` // a maximum price of which each part's share covers its price
	Deposit  uint64        `json:"deposit_utally"`
	Refused  string        `json:"refused,omitempty"` // why the parts cannot all be posted
}

// PartOutlook is a part's share of an Outlook.
type PartOutlook struct {
	Part int `json:"part"` // from 1
	parts.Range
	MaxPrice  uint64 `json:"max_price_utally"`
	Validator string `json:"validator,omitempty"`
	Owner     string `json:"owner,omitempty"` // of the validator, if it has declared one
	Price     uint64 `json:"price_utally"`    // at most
	Deposit   uint64 `json:"deposit_utally"`  // locked beside the maximum price, and returned
}

// Outlook returns what is known of the parts without a network, nil of an order that is not split.
func (b *Batch) Outlook() *Outlook {
	if b == nil {
		return nil
	}
	o := &Outlook{}
	for i, d := range b.Drafts {
		p := PartOutlook{Part: i + 1, Range: b.Ranges[i], MaxPrice: d.Terms.MaxPrice}
		if b.Wish.Validators != nil {
			p.Validator = b.Wish.Validators[i]
		}
		o.Parts, o.MaxPrice = append(o.Parts, p), o.MaxPrice+p.MaxPrice
	}
	return o
}

// Foresee asks where the parts of an order would go, as Run would choose. With anyPrice the maximum price does not count.
func Foresee(ctx context.Context, m Market, b *Batch, anyPrice bool) (*Outlook, error) {
	out := b.Outlook()
	owners, err := m.Owners(ctx)
	if err != nil {
		return nil, err
	}
	open := make([]wanted, len(b.Drafts))
	for i, d := range b.Drafts {
		o := d.Unsigned()
		if out.Parts[i].Deposit, err = m.Deposit(ctx, o); err != nil {
			return nil, err
		}
		out.Deposit += out.Parts[i].Deposit
		if anyPrice {
			o.Conditions.MaxPrice = 0
		}
		open[i] = wanted{part: i, order: o, only: out.Parts[i].Validator}
	}
	chosen, err := choose(ctx, m, owners, open, len(open))
	if refused := (*refusal)(nil); errors.As(err, &refused) {
		out.Refused = refused.Error()
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	prices := make([]uint64, len(chosen))
	for i, c := range chosen {
		p := &out.Parts[i]
		p.Validator, p.Price, p.Owner = c.Validator, c.Price, owners[c.Validator]
		prices[i] = c.Price
		out.Price += c.Price
	}
	out.Enough = parts.Enough(prices, b.Ranges)
	return out, nil
}

// wanted is a part for which a validator is sought.
type wanted struct {
	part   int
	order  *job.Order      // without validator
	only   string          // whom the consumer has named
	closed map[string]bool // owners that have other parts
	failed map[string]bool // validators under which it has failed
}

// refusal says that not every part finds a validator, and what keeps the offers from it.
type refusal struct {
	why   error
	bids  []marketv1.Bid // for the first part that finds none
	share uint64         // what that part may cost, utally; 0: anything
}

func (r *refusal) Error() string {
	if len(r.bids) > 0 && !slices.ContainsFunc(r.bids, func(b marketv1.Bid) bool { return b.Obstacle != "" }) {
		return r.why.Error()
	}
	text := fmt.Sprintf("%v. What keeps offers from it: %s", r.why, consume.Obstacles(r.bids))
	if slices.ContainsFunc(r.bids, func(b marketv1.Bid) bool { return r.share > 0 && b.Price > r.share }) {
		text += fmt.Sprintf(". Its share of conditions.maxPrice is %v; tally cost tells what is enough for all parts", consume.Amount(r.share))
	}
	return text
}

func (r *refusal) Unwrap() error { return r.why }

// choose finds an offer for each open part; all is the number of parts of the order.
func choose(ctx context.Context, m Market, owners map[string]string, open []wanted, all int) ([]parts.Offer, error) {
	offers, bids := make([][]parts.Offer, len(open)), make([][]marketv1.Bid, len(open))
	for i, w := range open {
		var err error
		if bids[i], err = m.Quote(ctx, w.order); err != nil {
			return nil, err
		}
		for _, b := range bids[i] {
			owner := cmp.Or(owners[b.Validator], b.Validator)
			if b.Obstacle == "" && (w.only == b.Validator || w.only == "" && !w.closed[owner]) {
				offers[i] = append(offers[i], parts.Offer{Validator: b.Validator, Owner: owner, Price: b.Price, Last: w.failed[b.Validator]})
			}
		}
	}
	chosen, err := parts.Choose(offers)
	short := (*parts.ShortError)(nil)
	if !errors.As(err, &short) {
		return chosen, err
	}
	at := short.Part
	share := open[at].order.Conditions.MaxPrice
	short.Part, short.Parts = open[at].part, all
	if w := open[at]; w.only != "" {
		return nil, &refusal{fmt.Errorf("part %d of %d: %s, which conditions.split names for it, does not take it, or belongs to the owner of another that is named: name another", w.part+1, all, w.only), bids[at], share}
	}
	return nil, &refusal{short, bids[at], share}
}

// Met returns an error if a part would find no validator.
func (o *Outlook) Met() error {
	if o.Refused != "" {
		return errors.New(o.Refused)
	}
	return nil
}

// Tell says it to people.
func (o *Outlook) Tell(w io.Writer) {
	fmt.Fprintf(w, "In %d parts, each an order of its own under another validator:\n", len(o.Parts))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  PART\tRECORDS\tRUNS\tPRICE\tAT MOST\tDEPOSIT\tVALIDATOR\t")
	for _, p := range o.Parts {
		price := "?"
		if p.Price > 0 {
			price = consume.Amount(p.Price).String()
		}
		fmt.Fprintf(t, "  %d\t%v\t%d\t%s\t%v\t%v\t%s\t\n", p.Part, p.Range, p.Runs, price, consume.Amount(p.MaxPrice), consume.Amount(p.Deposit), cmp.Or(p.Validator, "?"))
	}
	_ = t.Flush()
	if o.Price > 0 {
		fmt.Fprintf(w, "  All parts cost %v, of at most %v, and deposits of %v that come back. Each part may cost its share by runs:\n", consume.Amount(o.Price), consume.Amount(o.MaxPrice), consume.Amount(o.Deposit))
		fmt.Fprintf(w, "  for these offers maxPrice: %dutally is enough.\n", o.Enough)
	}
	if o.Refused != "" {
		fmt.Fprintf(w, "  not possible: %s\n", o.Refused)
	}
	fmt.Fprintln(w, "  Leads and providers of one part see no other. Custodians and auditors are drawn among all validators, so some may;")
	fmt.Fprintln(w, "  every challenger may ask for any file. All of them see the model.")
}
