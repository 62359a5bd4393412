package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tally-network/tally/bench/market"
	"github.com/tally-network/tally/core/auction"
)

// marketParts are the groups of rows about the auction.
var marketParts = []part{
	{"clearing", clearingRows}, {"welfare", welfareRows}, {"shading", shadingRows},
}

func marketRows(ctx context.Context, o Options) ([]Row, error) { return rowsOf(ctx, marketParts, o) }

// crowds are how many tasks a book has, and as many providers, with how often it is cleared.
var crowds = []struct{ size, runs int }{{1_000, 21}, {10_000, 9}, {100_000, 7}, {1_000_000, 1}}

func clearingRows(ctx context.Context, o Options) (rows []Row, err error) {
	var each []float64
	for _, c := range crowds {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		o.Tell("clears %d tasks and as many providers, of %d kinds", c.size, auction.Kinds)
		took, err := market.Time(c.size, c.runs)
		if err != nil {
			return nil, err
		}
		clearing, check := row(fmt.Sprintf("clearing/find_s/%d", c.size), "s", 0).among(seconds(took.Clear)), row(fmt.Sprintf("clearing/check_s/%d", c.size), "s", 0).among(seconds(took.Check))
		memory := row(fmt.Sprintf("clearing/find_mb/%d", c.size), "MB", float64(took.Bytes)/1e6)
		each = append(each, clearing.Value/float64(c.size))
		if c.size == 100_000 {
			clearing, check, memory = clearing.atMost(1), check.atMost(0.2), memory.atMost(500)
		}
		rows = append(rows, clearing, check, memory)
	}
	return append(rows, row("clearing/find_growth_of_each", "", slices.Max(each)/each[0])), nil
}

func seconds(all []time.Duration) (out []float64) {
	for _, d := range all {
		out = append(out, d.Seconds())
	}
	return out
}

const (
	welfareBooks = 1000
	shadingBooks = 100
	drawnBooks   = 10 // each is cleared many times
	fewTraders   = 10 // of each side, of single units
)

func welfareRows(_ context.Context, o Options) (rows []Row, err error) {
	for _, m := range market.Methods {
		o.Tell("compares %s with the optimum of %d small books", m.Name, welfareBooks)
		s, err := market.Welfare(m, welfareBooks)
		if err != nil {
			return nil, err
		}
		mean, worst := row("welfare/mean/"+m.Name, "of the optimum", s.Mean), row("welfare/worst/"+m.Name, "of the optimum", s.Worst)
		if m.Name == "posted" || m.Name == "fallback" {
			mean, worst = mean.atLeast(0.985), worst.atLeast(0.80)
		}
		rows = append(rows, mean, worst)
	}
	for _, r := range market.SingleRules {
		s, err := market.SingleWelfare(r, welfareBooks, fewTraders)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row("welfare/mean/"+r.String(), "of the optimum", s.Mean), row("welfare/worst/"+r.String(), "of the optimum", s.Worst))
	}
	return rows, nil
}

// rounding is what a truthful rule may let a buyer gain, as a share of its budget: a utally for each provider.
const rounding = 1e-5

func shadingRows(_ context.Context, o Options) (rows []Row, err error) {
	for _, r := range []auction.Rule{auction.Critical, auction.McAfee, auction.SBBA, auction.Exponential, auction.Midpoint, auction.Literal} {
		o.Tell("lets buyers lie under %s", r)
		books := shadingBooks
		if r == auction.Exponential {
			books = drawnBooks
		}
		g, err := market.Shading(r, books)
		if err != nil {
			return nil, err
		}
		most := row("shading/most/"+r.String(), "of the budget", g.Most)
		if r == auction.Critical || r == auction.McAfee || r == auction.SBBA {
			most = most.atMost(rounding)
		}
		rows = append(rows, row("shading/mean/"+r.String(), "of the budget", g.Mean), most)
	}
	return rows, nil
}
