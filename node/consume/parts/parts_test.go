package parts_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/node/consume/parts"
)

// Every record is in one part, in order; parts are of whole runs, of which they have as many but for one; joined they are what was cut.
func TestEveryRecordIsInOnePart(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		records, batch, n := 1+r.IntN(200), 1+r.IntN(20), 1+r.IntN(12)
		cut, err := parts.Cut(records, batch, n)
		runs := (records-1)/batch + 1
		if runs < n {
			if err == nil {
				t.Fatalf("%d records in runs of %d make %d parts", records, batch, n)
			}
			continue
		}
		if err != nil || len(cut) != n {
			t.Fatalf("%d records in runs of %d, %d parts: %v, %v", records, batch, n, cut, err)
		}
		ids := tensor.Must(tensor.New(tensor.Int32, tensor.Shape{records, 3}))
		for i := range ids.Len() {
			ids.Set(i, tensor.Word(int64(i)))
		}
		all := &graph.State{Slots: []graph.Slot{{Name: "ids", Type: ids.Type, Shape: ids.Shape}}, Tensors: []*tensor.Tensor{ids}}
		next, least, most := 0, math.MaxInt, 0
		var results []map[string]*tensor.Tensor
		for i, c := range cut {
			if c.First != next || c.First%batch != 0 || c.Records < 1 || i < n-1 && c.Records%batch != 0 {
				t.Fatalf("%d records in runs of %d: part %d is %+v", records, batch, i, c)
			}
			next += c.Records
			took := (c.Records-1)/batch + 1
			least, most = min(least, took), max(most, took)
			s, err := c.Of(all)
			if err != nil {
				t.Fatal(err)
			}
			results = append(results, map[string]*tensor.Tensor{"ids": s.Tensors[0]})
		}
		joined, err := parts.Join(results)
		if next != records || most-least > 1 || err != nil || !joined["ids"].Equal(ids) {
			t.Fatalf("%d records in runs of %d make %v, %v", records, batch, cut, err)
		}
	}
}

// Shares of a price add up to it, and are as the runs are, but for a utally.
func TestSharesOfAPriceAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		n := 1 + r.IntN(10)
		cut, all := make([]parts.Range, n), 0
		for i := range cut {
			cut[i].Runs = 1 + r.IntN(1000)
			all += cut[i].Runs
		}
		total := r.Uint64() >> r.IntN(44)
		shares, err := parts.Prices(total, cut)
		if err != nil {
			if !slices.ContainsFunc(cut, func(c parts.Range) bool { return float64(total)/float64(all)*float64(c.Runs) < 2 }) {
				t.Fatalf("%d among %v: %v", total, cut, err)
			}
			continue
		}
		sum := uint64(0)
		for i, s := range shares {
			sum += s
			if want := float64(total) * float64(cut[i].Runs) / float64(all); math.Abs(float64(s)-want) > 1+want/1e12 {
				t.Fatalf("a share of %d, want %g", s, want)
			}
		}
		if sum != total {
			t.Fatalf("%d is divided into %v", total, shares)
		}
	}
	if _, err := parts.Prices(2, []parts.Range{{Runs: 1}, {Runs: 1}, {Runs: 1}}); err == nil || !strings.Contains(err.Error(), "maxPrice") {
		t.Errorf("nothing for a part: %v", err)
	}
	if _, err := parts.Prices(2, nil); err == nil {
		t.Error("a price is divided among nobody")
	}
}

// What is enough covers the price of each part, and hardly more: a utally a part less does not.
func TestWhatIsEnough(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 2000 {
		n := 1 + r.IntN(10)
		of, prices := make([]parts.Range, n), make([]uint64, n)
		for i := range of {
			of[i].Runs, prices[i] = 1+r.IntN(9), 1+r.Uint64()>>(20+r.IntN(44))
		}
		covers := func(total uint64) bool {
			shares, err := parts.Prices(total, of)
			for i, price := range prices {
				if err != nil || shares[i] < price {
					return false
				}
			}
			return true
		}
		all := 0
		for _, x := range of {
			all += x.Runs
		}
		enough := parts.Enough(prices, of)
		if !covers(enough) || enough > uint64(all) && covers(enough-uint64(all)) {
			t.Fatalf("%d for prices of %d and parts of %v", enough, prices, of)
		}
	}
	if got := parts.Enough([]uint64{math.MaxUint64, 1}, []parts.Range{{Runs: 1}, {Runs: 9}}); got != math.MaxUint64 {
		t.Errorf("more than there is: %d", got)
	}
}

// Wherever each part can have an owner of its own, it gets one that takes it; else the error says how many there are.
func TestPartsGoToOwnersOfTheirOwn(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	short := 0
	for range 3000 {
		n, validators := 1+r.IntN(4), 1+r.IntN(6)
		offers := make([][]parts.Offer, n)
		for v := range validators {
			owner := fmt.Sprint("owner-", r.IntN(validators))
			for i := range offers {
				if r.IntN(3) > 0 {
					offers[i] = append(offers[i], parts.Offer{Validator: fmt.Sprint("validator-", v), Owner: owner, Price: uint64(r.IntN(5)), Last: r.IntN(5) == 0})
				}
			}
		}
		chosen, err := parts.Choose(offers)
		if possible := assignable(offers, map[string]bool{}); possible != (err == nil) {
			t.Fatalf("%+v can be chosen from: %v, and %v", offers, possible, err)
		}
		var few *parts.ShortError
		if err != nil {
			if short++; !errors.As(err, &few) || (few.Takers == 0) == strings.Contains(err.Error(), "lower split") {
				t.Fatal(err)
			}
			continue
		}
		owners, names := map[string]bool{}, map[string]bool{}
		for i, c := range chosen {
			if !slices.Contains(offers[i], c) || owners[c.Owner] || names[c.Validator] {
				t.Fatalf("%+v of %+v", chosen, offers)
			}
			owners[c.Owner], names[c.Validator] = true, true
		}
	}
	if short == 0 {
		t.Error("there was always somebody")
	}
}

func assignable(offers [][]parts.Offer, taken map[string]bool) bool {
	if len(offers) == 0 {
		return true
	}
	for _, o := range offers[0] {
		if !taken[o.Owner] {
			taken[o.Owner] = true
			ok := assignable(offers[1:], taken)
			delete(taken, o.Owner)
			if ok {
				return true
			}
		}
	}
	return false
}

// The cheapest are taken first. One at which an order has failed is taken where nobody else is left.
func TestCheapestAreChosen(t *testing.T) {
	of := func(name string, price uint64, last bool) parts.Offer {
		return parts.Offer{Validator: name, Owner: "owner of " + name, Price: price, Last: last}
	}
	all := []parts.Offer{of("c", 3, false), of("a", 1, false), of("d", 1, true), of("b", 2, false)}
	got, err := parts.Choose([][]parts.Offer{all, all, all})
	var names []string
	for _, o := range got {
		names = append(names, o.Validator)
	}
	if err != nil || !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Errorf("%v, %v", names, err)
	}
	if got, err = parts.Choose([][]parts.Offer{all[:3], all[2:3]}); err != nil || got[0].Validator != "a" || got[1].Validator != "d" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err = parts.Choose([][]parts.Offer{all[:2], all[1:2]}); err != nil || got[0].Validator != "c" || got[1].Validator != "a" {
		t.Errorf("who has a choice makes room: %v, %v", got, err)
	}
}

// What people write is taken, or refused in words that help.
func TestWishes(t *testing.T) {
	a, b := chaintest.Named("v0").String(), chaintest.Named("v1").String()
	for text, want := range map[string]string{
		"3": "", `["` + a + `","` + b + `"]`: "", "1": "write 2 to 64", "0": "write 2 to 64", "65": "write 2 to 64", "[]": "write 2 to 64",
		`["` + a + `","` + a + `"]`: "names " + a + " twice", `["x","y"]`: "tally query market offers", `"three"`: "write a number of validators", "-2": "write 2 to 64", "2.5": "write a number of validators",
	} {
		var w parts.Wish
		err := json.Unmarshal([]byte(text), &w)
		if want == "" {
			back, bad := json.Marshal(w)
			if err != nil || bad != nil || string(back) != text || w.IsZero() {
				t.Errorf("%s: %v, %s, %v", text, err, back, bad)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	w := parts.Wish{Count: 2}
	for want, err := range map[string]error{"leave validator out": w.Check(a, false, 0), "auction": w.Check("", true, 0), "replicas": w.Check("", false, 2)} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := errors.Join(w.Check("", false, 0), (&parts.Wish{}).Check(a, true, 2)); err != nil {
		t.Error(err)
	}
}

// Results of another form are no part of the same order.
func TestJoinRefuses(t *testing.T) {
	of := func(name string, typ tensor.DType, s ...int) map[string]*tensor.Tensor {
		return map[string]*tensor.Tensor{name: tensor.Must(tensor.New(typ, s))}
	}
	first := of("y", tensor.Float32, 2, 3)
	for _, other := range []map[string]*tensor.Tensor{of("z", tensor.Float32, 2, 3), of("y", tensor.Int32, 2, 3), of("y", tensor.Float32, 2, 4), of("y", tensor.Float32), {}} {
		if _, err := parts.Join([]map[string]*tensor.Tensor{first, other}); err == nil {
			t.Errorf("%v joins %v", first, other)
		}
	}
	if _, err := parts.Join(nil); err == nil {
		t.Error("nothing is joined")
	}
}

// Who judges two parts, or judges one and leads another, sees two; who was drawn once and replaced has seen what it was given.
func TestViewersAreCounted(t *testing.T) {
	party := func(name, owner string) job.Party { return job.Party{Account: name, Owner: owner} }
	all := job.Pool{party("v0", ""), party("v1", ""), party("v2", "firm"), party("v3", "firm"), party("v4", "")}
	lease := func(lead, provider string, custodians ...string) *job.Lease {
		l := &job.Lease{Line: job.Line{Leads: []job.Leader{{Account: lead}, {Account: "v4"}}}, Providers: job.Pool{party(provider, "")}, Auditors: all}
		for _, c := range custodians {
			l.Files.Custodians = append(l.Files.Custodians, job.FileCustodian{Account: c})
		}
		l.Units = []job.Unit{{Attested: []job.Attestation{{Custodian: custodians[0]}}, Audits: []job.Audit{{Auditor: custodians[0]}}}}
		return l
	}
	v := parts.NewViewers()
	v.Add(0, lease("v0", "p0", "v2"))
	v.Add(0, lease("v0", "p0", "v4")) // drawn in place of v2
	v.Add(1, lease("v1", "p1", "v0", "v3"))
	got := v.Views()
	if got != (parts.Views{Workers: 4, Judges: 4, JudgesOfMany: 1, Owners: 6, OwnersOfMany: 2, AskersOfMany: 5}) {
		t.Errorf("%+v", got)
	}
	if text := got.String(); !strings.Contains(text, "1 of 4 judges see more than one part") || !strings.Contains(text, "no one of 4 leads and providers") {
		t.Error(text)
	}
	moved := lease("v1", "p0", "v4")
	v.Add(1, moved)
	if got := v.Views(); got.WorkersOfMany != 1 || !strings.Contains(got.String(), "MORE than one part") {
		t.Errorf("%+v", got)
	}
}
