package market

import (
	"math/rand/v2"
	"testing"

	"github.com/tally-network/tally/core/auction"
)

// The bound is never below the optimum. Where each task demands one kind it is the value of the linear program, which
// differs by what one task of each kind is worth at most.
func TestBoundIsAboveTheOptimum(t *testing.T) {
	sum, books := 0.0, 0
	for seed := range uint64(300) {
		kinds := 1 + int(seed%3)
		b := smallBook(rand.New(rand.NewPCG(seed, 1)), kinds)
		best, err := auction.Optimum(b)
		if err != nil {
			t.Fatal(err)
		}
		bound, prices := Bound(b)
		if bound < float64(best)*(1-1e-12) {
			t.Fatalf("book %d: a bound of %.0f at %v, and an optimum of %d", seed, bound, prices, best)
		}
		if best > 0 {
			sum, books = sum+float64(best)/bound, books+1
		}
		most := 0.0
		for i := range b.Tasks {
			most = max(most, float64(b.Tasks[i].Budget))
		}
		if kinds == 1 && bound > float64(best)+most {
			t.Errorf("book %d: a bound of %.0f, and an optimum of %d: more than a task apart", seed, bound, best)
		}
	}
	if share := sum / float64(books); share < 0.8 {
		t.Errorf("the optimum is %.3f of the bound on average", share)
	}
}
