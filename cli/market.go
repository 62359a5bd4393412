package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cosmos/gogoproto/jsonpb"
	"github.com/spf13/cobra"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/cli/numbers"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/market"
)

func (r *reader) market() *cobra.Command {
	var watch bool
	var file string
	most := 8
	cmd := &cobra.Command{
		Use: "market", GroupID: "network", Args: cobra.NoArgs,
		Short: "Show what computation costs: offers, open orders, depth, last trades",
		Long: `Shows the market. Offers stand best first: the least ask, then the longest standing.
An ask is a provider's price with its validator's fee. What an order pays besides
(audits, copies of its data, the part that is burnt) is in what trades paid and
open orders bid, so that both are higher; tally cost tells the parts for one order.

Orders with auction: true are counted with the auction, by units of capacity: 10⁹ operations,
of which moving a byte counts as some. All other tables count operations alone.

A trade is a match, at the most that the order can cost. Who is marked "own" ordered from
itself, as for a probe: that counts in no price. A token is one of text
that is trained on once; an hour is that of a provider at its tier's lower bound.
With --watch it is shown again with every block; with --json as well, each time as one line.

With --certificate it looks for a clearing of the auction under way that is worth more than
what the chain finds by itself, and than what others have posted. Anybody may post it.`,
		Example: "  tally market --home tally-devnet/consumer\n  tally market --watch --endpoints tally-devnet/endpoints.json\n  tally market --json | jq .prices.gflop.p50_utally\n  tally market --certificate clearing.json",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			ctx := cmd.Context()
			if err := r.dial(ctx); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, r.close()) }()
			if file != "" {
				return r.writeClearing(ctx, file)
			}
			if watch {
				return r.watchMarket(ctx, most)
			}
			v, err := market.Look(ctx, r.role.Chain.Conn)
			if err != nil {
				return err
			}
			return r.e.show(v, func(w io.Writer) { tellMarket(w, v, most, terminal(w)) })
		},
	}
	r.flags(cmd.Flags())
	cmd.Flags().BoolVar(&watch, "watch", false, "show it again with every block, until Ctrl-C")
	cmd.Flags().Var(numbers.Within(&most, 1, market.Most), "limit", "lines of a list")
	cmd.Flags().StringVar(&file, "certificate", "", "look for the best clearing of the auction under way, and write its certificate to this file")
	return cmd
}

// writeClearing looks for the best clearing of the auction under way, and writes its certificate.
func (r *reader) writeClearing(ctx context.Context, file string) error {
	f, err := market.Clear(ctx, r.role.Chain.Conn)
	if err != nil {
		return err
	}
	text, err := (&jsonpb.Marshaler{OrigName: true}).MarshalToString(f.Message)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	return r.e.show(f, func(w io.Writer) { tellFound(w, f, file) })
}

func tellFound(w io.Writer, f *market.Found, file string) {
	fmt.Fprintf(w, "Clearing %d: %s, %s; it takes certificates until %s\n", f.Clearing, numbers.Several(f.Demands, "order"), numbers.Several(f.Sellers, "seller"), wire.Moment(f.Closes))
	fmt.Fprintf(w, "  found     %v in %s\n", consume.Amount(f.Welfare), numbers.Several(int(f.Trades), "trade"))
	fmt.Fprintf(w, "  the chain %v\n", consume.Amount(f.Fallback))
	if f.Posted > 0 {
		fmt.Fprintf(w, "  posted    %v\n", consume.Amount(f.Posted))
	}
	if f.Better {
		fmt.Fprintf(w, "It is better. Post it:\n  tally tx auction post-clearing %s -y\n", file)
	} else {
		fmt.Fprintln(w, "There is nothing to gain by posting it")
	}
}

// tellAuction shows what is bid at auctions, and what the last clearings came to.
func tellAuction(w io.Writer, a *market.Auction, now int64, most int) {
	if a == nil || len(a.Tiers)+len(a.Cleared) == 0 {
		return
	}
	fmt.Fprintln(w, "Auction: "+auctionState(a, now))
	table(w, "TIER\tWANTED UNITS\tORDERS\tOFFERED UNITS\tSELLERS\tLEAST ASK", len(a.Tiers), most, func(i int) string {
		t := &a.Tiers[i]
		ask := "–"
		switch {
		case t.Ask > 0:
			ask = fmt.Sprint(t.Ask)
		case t.Sellers > 0:
			ask = "sealed"
		}
		return fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%s", t.Tier, t.Wanted, t.Orders, t.Offered, t.Sellers, ask)
	})
	for i := range a.Tiers {
		t := &a.Tiers[i]
		if t.Idle > 0 {
			fmt.Fprintf(w, "  WARNING: of tier %s no clearing takes %s: %s\n", t.Tier, numbers.Several(t.Idle, "further lot"), t.Unsold)
		}
		if t.Thin != "" {
			fmt.Fprintln(w, "  WARNING:", t.Thin)
		}
	}
	type row struct {
		c *auctionv1.Cleared
		t *auctionv1.ClearedTier
	}
	var rows []row
	for i := range a.Cleared {
		for j := range a.Cleared[i].Tiers {
			if t := &a.Cleared[i].Tiers[j]; t.Sold > 0 {
				rows = append(rows, row{&a.Cleared[i], t})
			}
		}
	}
	if len(rows) == 0 {
		return
	}
	fmt.Fprintln(w, "Last clearings in which something was sold, newest first")
	table(w, "CLEARING\tTIER\tSOLD UNITS\tOF OFFERED\tPRICE/UNIT\tSALES, ALL TIERS\tTIME", len(rows), most, func(i int) string {
		c, t := rows[i].c, rows[i].t
		price := fmt.Sprint(t.Low)
		if t.High > t.Low {
			price += fmt.Sprintf("–%d", t.High)
		}
		return fmt.Sprintf("%d\t%s\t%d\t%d\t%s\t%d\t%s", c.Number, t.Tier, t.Sold, t.Offered, price, c.Sales, wire.Moment(c.ClosedAt))
	})
}

// auctionState says what the clearing under way does, or when the next one may begin.
func auctionState(a *market.Auction, now int64) string {
	switch a.State {
	case market.Open:
		return fmt.Sprintf("clearing %d takes certificates until %s", a.Clearing, wire.Moment(a.Until))
	case market.Sealed:
		return fmt.Sprintf("clearing %d takes sealed bids until %s", a.Clearing, wire.Moment(a.Until))
	case market.Revealing:
		return fmt.Sprintf("bids of clearing %d are revealed until %s", a.Clearing, wire.Moment(a.Until))
	case market.Waiting:
		return fmt.Sprintf("clearing %d waits for the beacon's value, from which its draws follow", a.Clearing)
	case market.Closed:
		return fmt.Sprintf("what clearing %d sold becomes sales", a.Clearing)
	}
	if a.Next <= now {
		return "the next clearing begins once something is offered and wanted"
	}
	return fmt.Sprintf("the next clearing begins once something is offered and wanted, from %s on", wire.Moment(a.Next))
}

// clearScreen empties a terminal's screen.
const clearScreen = "\x1b[H\x1b[2J"

// watchMarket shows the market with every block, and at most once a second.
func (r *reader) watchMarket(ctx context.Context, most int) error {
	w, height := r.e.out, int64(0)
	for {
		b, err := r.role.Chain.Next(ctx, height)
		if err != nil {
			return err
		}
		height = b.Height
		v, err := market.Look(ctx, r.role.Chain.Conn)
		if err != nil {
			return err
		}
		switch {
		case r.e.json:
			r.e.printed = true
			if err := json.NewEncoder(w).Encode(v); err != nil {
				return err
			}
		case terminal(w):
			var all strings.Builder
			tellMarket(&all, v, most, true)
			fmt.Fprintf(w, "%sBlock %d, %s; Ctrl-C ends it\n\n%s", clearScreen, b.Height, wire.Moment(b.Time), all.String())
		default:
			fmt.Fprintf(w, "Block %d, %s\n", b.Height, wire.Moment(b.Time))
			tellMarket(w, v, most, false)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// tellMarket writes a view for people, with pictures where they can be seen.
func tellMarket(w io.Writer, v *market.View, most int, pictures bool) {
	tellOffers(w, v.Offers, most)
	tellOpen(w, v.Orders, most)
	tellDepth(w, v.Depth, pictures)
	tellAuction(w, v.Auction, v.Now, most)
	tellTrades(w, v, most, pictures)
}

// table writes rows in columns, and how many more there are.
func table(w io.Writer, head string, rows, most int, row func(i int) string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  "+head)
	for i := range min(rows, most) {
		fmt.Fprintln(t, "  "+row(i))
	}
	_ = t.Flush()
	if rows > most {
		fmt.Fprintf(w, "  and %d more: --limit shows them\n", rows-most)
	}
}

func tellOffers(w io.Writer, all []market.Offer, most int) {
	if len(all) == 0 {
		fmt.Fprintln(w, "No offers: no validator sells computation at present")
		return
	}
	fmt.Fprintln(w, "Offers, best first")
	table(w, "ASK/GFLOP\tTO\tFEE\tPROVIDERS\tLEADS\tFREE\tSTANDS SINCE\tENDS\tVALIDATOR", len(all), most, func(i int) string {
		o := &all[i]
		ask, dearest, ends := "–", "–", "–"
		if o.Providers > 0 {
			ask, dearest = numbers.Text(o.Ask), numbers.Text(o.Dearest)
		}
		if o.Ends > 0 {
			ends = wire.Moment(o.Ends)
		}
		return fmt.Sprintf("%s\t%s\t%.2f %%\t%d\t%d\t%d\t%s\t%s\t%s", ask, dearest, float64(o.FeeBps)/100, o.Providers, o.Leads, o.Free, wire.Moment(o.Since), ends, o.Validator)
	})
}

func tellOpen(w io.Writer, all []market.Order, most int) {
	if len(all) == 0 {
		fmt.Fprintln(w, "No open orders for standing offers")
		return
	}
	fmt.Fprintln(w, "Open orders, the highest bid first")
	table(w, "BID/GFLOP\tAT MOST\tGFLOP\tKIND\tEXPIRES\tORDER", len(all), most, func(i int) string {
		o := &all[i]
		return fmt.Sprintf("%s\t%v\t%s\t%s\t%s\t%.16s", numbers.Text(o.Bid), consume.Amount(o.MaxPrice), numbers.Text(o.FLOPs/1e9), o.Kind, wire.Moment(o.Expires), o.Order)
	})
}

// widest is how long a bar of the depth may be.
const widest = 24

func tellDepth(w io.Writer, all []market.Level, pictures bool) {
	if len(all) == 0 {
		return
	}
	demand, supply := all[len(all)-1].Demand, all[0].Supply
	fmt.Fprintln(w, "Depth: wanted at a price or above, offered at it or below")
	table(w, "PRICE/GFLOP\tWANTED GFLOP\t\tOFFERED ORDERS\t", len(all), len(all), func(i int) string {
		l := &all[i]
		bars := [2]string{}
		if pictures {
			bars = [2]string{bar(l.Demand, demand), bar(float64(l.Supply), float64(supply))}
		}
		return fmt.Sprintf("%s\t%s\t%s\t%d\t%s", numbers.Text(l.Price), numbers.Text(l.Demand), bars[0], l.Supply, bars[1])
	})
}

func bar(part, whole float64) string {
	if whole <= 0 {
		return ""
	}
	return strings.Repeat("█", int(widest*part/whole+0.5))
}

func tellTrades(w io.Writer, v *market.View, most int, pictures bool) {
	if len(v.Trades) == 0 {
		fmt.Fprintln(w, "No trades yet, so no prices")
		return
	}
	fmt.Fprintln(w, "Last trades, newest first")
	table(w, "PER GFLOP\tAT MOST\tGFLOP\tKIND\tCOPIES\tPROVIDERS\tTIME\tORDER", len(v.Trades), most, func(i int) string {
		t := &v.Trades[i]
		kind := t.Kind
		if t.Own {
			kind += ", own"
		}
		return fmt.Sprintf("%s\t%v\t%s\t%s\t%d\t%d\t%s\t%.16s", numbers.Text(market.PerGFLOP(t)), consume.Amount(t.Price), numbers.Text(float64(t.Flops)/1e9), kind, t.Copies, t.Providers, wire.Moment(t.At), t.Order)
	})
	p := &v.Prices
	if p.Trades == 0 {
		return
	}
	fmt.Fprintf(w, "Prices of the last %s, own ones left out\n", numbers.Several(p.Trades, "trade"))
	if pictures && p.Trades > 1 {
		fmt.Fprintf(w, "  GFLOP     %s\n", sparkline(v))
	}
	spread := func(name string, q market.Quantiles) {
		switch {
		case q.Of >= 10: // fewer have no tenth
			fmt.Fprintf(w, "  %-9s %s utally; a tenth agreed on %s or less, a tenth on %s or more\n", name, numbers.Text(q.P50), numbers.Text(q.P10), numbers.Text(q.P90))
		case q.Of > 0:
			fmt.Fprintf(w, "  %-9s %s utally\n", name, numbers.Text(q.P50))
		}
	}
	spread("GFLOP", p.GFLOP)
	spread("token", p.Token)
	for _, h := range p.Hours {
		fmt.Fprintf(w, "  hour of %s %s TALLY, at %s TFLOP/s\n", h.Tier, numbers.Text(h.Price/1e6), numbers.Text(float64(h.Speed)/1e12))
	}
}

// sparkline draws the prices of a GFLOP, the newest on the right.
func sparkline(v *market.View) string {
	const heights, width = "▁▂▃▄▅▆▇█", 60
	var prices []float64
	for i := 0; i < len(v.Trades) && len(prices) < width; i++ {
		if !v.Trades[i].Own {
			prices = append(prices, market.PerGFLOP(&v.Trades[i]))
		}
	}
	if len(prices) == 0 {
		return ""
	}
	slices.Reverse(prices)
	low, high := prices[0], prices[0]
	for _, p := range prices {
		low, high = min(low, p), max(high, p)
	}
	var line strings.Builder
	for _, p := range prices {
		at := 0
		if high > low {
			at = int((p - low) / (high - low) * 7)
		}
		line.WriteRune([]rune(heights)[at])
	}
	return line.String() + " to " + numbers.Text(prices[len(prices)-1])
}
