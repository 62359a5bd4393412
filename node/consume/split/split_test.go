package split_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/engine/cpu"
	"github.com/tally-network/tally/format/onnx"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/consume/outputs"
	"github.com/tally-network/tally/node/consume/parts"
	"github.com/tally-network/tally/node/consume/split"
	"github.com/tally-network/tally/node/desk"
	"github.com/tally-network/tally/node/evidence"
)

// town is a chain and a consumer's home that a test can end at any call.
type town struct {
	t        *testing.T
	mu       sync.Mutex
	drafts   map[canon.Hash]*consume.Draft // by start root
	prices   map[string]uint64             // of a validator's offer
	owners   map[string]string
	orders   []*posted
	pending  map[canon.Hash]bool // posted, and in no block yet
	fails    map[string]marketv1.Status
	stops    map[string]bool // validators whose leases end early
	fuse     int             // calls until the process dies; below 0: it does not
	followed map[canon.Hash]bool
	lost     string        // validator of the part whose results nobody has any more
	hold     chan struct{} // if there is one, leases wait for it
	poor     error
}

type posted struct {
	order  job.Order
	status marketv1.Status
	lease  *job.Lease
}

var errKilled = errors.New("killed")

// call counts a call, and reports whether the process is dead.
func (n *town) call() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fuse == 0 {
		return errKilled
	}
	n.fuse--
	return nil
}

func (n *town) Buyer() consume.Buyer {
	return consume.Buyer{Chain: "town", Account: chaintest.Named("consumer").String(), Contact: job.Contact{Key: make([]byte, 32)}}
}

func (n *town) Quote(_ context.Context, o *job.Order) (bids []marketv1.Bid, err error) {
	if o.Conditions.Validator != "" {
		n.t.Error("an offer is chosen among one")
	}
	for _, v := range slices.Sorted(maps.Keys(n.prices)) {
		b := marketv1.Bid{Validator: v, Price: n.prices[v] * uint64(o.Problem.Records)}
		if o.Conditions.MaxPrice > 0 && b.Price > o.Conditions.MaxPrice {
			b.Obstacle = "it costs more than the order pays"
		}
		bids = append(bids, b)
	}
	return bids, n.call()
}

func (n *town) Owners(context.Context) (map[string]string, error) { return n.owners, n.call() }

func (n *town) Deposit(context.Context, *job.Order) (uint64, error) { return 10, nil }

func (n *town) Similar(_ context.Context, o *job.Order) (out []*consume.EarlierOrder, err error) {
	if err := n.call(); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range slices.Backward(n.orders) {
		if p.order.Problem.Start != o.Problem.Start || n.pending[p.order.ID()] {
			continue
		}
		e := &consume.EarlierOrder{Order: p.order, OwnPeer: true, Progress: consume.Progress{Status: p.status, Lease: p.lease}}
		e.Resumable = p.status != marketv1.STATUS_EXPIRED && p.status != marketv1.STATUS_CANCELLED && (p.lease == nil || p.lease.Reason == "")
		if out = append(out, e); e.Resumable {
			break
		}
	}
	return out, nil
}

func (n *town) Afford(context.Context, *job.Order) error { return errors.Join(n.poor, n.call()) }

func (n *town) Post(ctx context.Context, d *consume.Draft, again bool) (canon.Hash, error) {
	o, err := d.Order(n.Buyer())
	if err != nil {
		return canon.Hash{}, err
	}
	dead := n.call()
	n.mu.Lock()
	defer n.mu.Unlock()
	o.Nonce = 0
	for _, p := range n.orders { // as consume.FindEarlier does
		same := p.order
		if same.Nonce = o.Nonce; same.ID() == o.ID() && !n.pending[p.order.ID()] {
			o.Nonce++
		}
	}
	if n.pending[o.ID()] {
		delete(n.pending, o.ID()) // the chain takes it once
		return o.ID(), dead
	}
	n.orders = append(n.orders, &posted{order: o, status: marketv1.STATUS_OPEN})
	n.pending[o.ID()] = dead != nil
	return o.ID(), dead
}

func (n *town) Keep(_ context.Context, o *job.Order, body func() io.Reader) error {
	if _, err := io.Copy(io.Discard, body()); err != nil {
		n.t.Error(err)
	}
	return n.call()
}

func (n *town) Follow(ctx context.Context, id canon.Hash, done func(consume.Progress) bool) (now consume.Progress, err error) {
	if err := n.call(); err != nil {
		return now, err
	}
	if n.hold != nil {
		done(consume.Progress{Status: marketv1.STATUS_OPEN})
		select {
		case <-ctx.Done():
			return consume.Progress{Status: marketv1.STATUS_OPEN}, ctx.Err()
		case <-n.hold:
		}
	}
	n.mu.Lock()
	i := slices.IndexFunc(n.orders, func(p *posted) bool { return p.order.ID() == id })
	p := n.orders[i]
	n.followed[id] = true
	v := p.order.Conditions.Validator
	if s := n.fails[v]; s != 0 {
		p.status = s
	} else if p.lease == nil {
		p.status, p.lease = marketv1.STATUS_SETTLED, &job.Lease{
			Order: p.order, Phase: job.Settled, Round: 1, Units: make([]job.Unit, p.order.Problem.Units()), Merges: make([]job.Merge, 1), Line: job.Line{Leads: []job.Leader{{Account: v}}},
			Providers: job.Pool{{Account: "provider of " + v}}, Files: job.Files{Said: job.Had, Custodians: []job.FileCustodian{{Account: "judge"}}},
		}
		if n.stops[v] {
			p.lease.Round, p.lease.Reason = 0, "no provider answered"
		}
	}
	now = consume.Progress{Status: p.status, Lease: p.lease, HandedOver: true}
	n.mu.Unlock()
	done(now)
	switch now.Status {
	case marketv1.STATUS_CANCELLED:
		return now, consume.ErrCancelled
	case marketv1.STATUS_EXPIRED:
		return now, fmt.Errorf("%w: nobody", consume.ErrUnmet)
	}
	return now, n.call()
}

// Deliver gives back each record, and a name of the order as the proof. It may die in between.
func (n *town) Deliver(_ context.Context, r desk.DeliveryRequest) (*consume.Results, error) {
	i := slices.IndexFunc(n.orders, func(p *posted) bool { return p.order.ID() == r.Order })
	d := n.drafts[n.orders[i].order.Problem.Start]
	if n.orders[i].order.Conditions.Validator == n.lost {
		return nil, errors.New("nobody has it")
	}
	if err := errors.Join(n.call(), os.MkdirAll(r.Dir, 0o755)); err != nil {
		return nil, err
	}
	_, err := outputs.Write(r.Dir, r.Format, map[string]*tensor.Tensor{"y": d.Job.Start.Tensors[0]}, d.Problem.Records)
	if err := errors.Join(err, n.call()); err != nil {
		return nil, err
	}
	return &consume.Results{}, errors.Join(os.WriteFile(filepath.Join(r.Dir, consume.BundleName), []byte(r.Order.String()), 0o600), evidence.WriteTrust(r.Dir, "town", evidence.Trust{1}))
}

func (n *town) Outcome(_ context.Context, l *job.Lease) (consume.Outcome, error) {
	return consume.Outcome{Order: l.Order.ID().String(), Status: l.Phase.String(), Price: 7}, nil
}

func (n *town) Now() int64 { return 0 }

// scene is a town, an order that is split, and a home.
func scene(t *testing.T, wish string, validators int) (*town, *split.Batch, split.Options) {
	dir := t.TempDir()
	b := graph.NewBuilder("square")
	x := b.Input("x", tensor.Float32, nil)
	b.Output(b.With().As("y").Op("Mul", x, x), tensor.Float32, nil)
	model, err := onnx.Write(b.Graph())
	if err != nil {
		t.Fatal(err)
	}
	order := filepath.Join(dir, "order.yaml")
	text := "kind: BatchOrder\nproblem:\n  model: square.onnx\n  grid: {x: [1, 2, 3, 4, 5, 6, 7]}\nconditions: {split: " + wish + ", maxPrice: 1000utally}\n"
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "square.onnx"), model, 0o600), os.WriteFile(order, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	s, err := consume.ReadOrder(order)
	if err != nil {
		t.Fatal(err)
	}
	d, err := split.Read(t.Context(), s, cpu.New(1))
	if err != nil {
		t.Fatal(err)
	}
	n := &town{t: t, fuse: -1, drafts: map[canon.Hash]*consume.Draft{}, prices: map[string]uint64{}, owners: map[string]string{}, pending: map[canon.Hash]bool{}, followed: map[canon.Hash]bool{}}
	for _, p := range d.Split.Drafts {
		n.drafts[p.Problem.Start] = p
	}
	for i := range validators {
		n.prices[validator(i)] = uint64(i + 1)
	}
	return n, d.Split, split.Options{Home: dir, Wait: true, Out: filepath.Join(dir, "out"), Format: "jsonl", Tell: func(string, ...any) {}}
}

func validator(i int) string { return chaintest.Named(fmt.Sprint("v", i)).String() }

const joined = "{\"y\":1}\n{\"y\":2}\n{\"y\":3}\n{\"y\":4}\n{\"y\":5}\n{\"y\":6}\n{\"y\":7}\n"

// whole checks that results and proofs of a run are there, and that nothing else is.
func whole(t *testing.T, n *town, r *split.Report, o split.Options) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(o.Out, "results.jsonl"))
	if err != nil || string(text) != joined || r.Records != 7 || r.Outputs["y"] != filepath.Join(o.Out, "results.jsonl") {
		t.Fatalf("%q, %v, %+v", text, err, r)
	}
	leads := map[string]bool{}
	for i, p := range r.Parts {
		bundle, err := os.ReadFile(filepath.Join(o.Out, fmt.Sprintf("part-%d", i+1), consume.BundleName))
		if err != nil || string(bundle) != p.Order || p.Failed != "" || leads[p.Validator] {
			t.Fatalf("%q, %v, %+v", bundle, err, p)
		}
		leads[p.Validator] = true
	}
	if there, err := filepath.Glob(o.Out + ".partial*"); err != nil || len(there) > 0 {
		t.Errorf("left behind: %v, %v", there, err)
	}
}

// paid counts the orders of each part.
func (n *town) paid() map[canon.Hash]int {
	out := map[canon.Hash]int{}
	for _, p := range n.orders {
		out[p.order.Problem.Start]++
	}
	return out
}

// A run that dies at whatever call goes on where it stands: each part is posted once, under the validator that was chosen first, though
// others have become cheaper meanwhile.
func TestRunGoesOnWhereItDied(t *testing.T) {
	t.Parallel()
	for at := 0; ; at++ {
		n, b, o := scene(t, "3", 5)
		n.fuse = at
		r, err := split.Run(t.Context(), n, b, o)
		died := err != nil
		for i := range 5 {
			n.prices[validator(i)] = uint64(5 - i)
		}
		led := map[canon.Hash]string{}
		for _, p := range n.orders {
			led[p.order.Problem.Start] = p.order.Conditions.Validator
		}
		if n.fuse = -1; died {
			if r, err = split.Run(t.Context(), n, b, o); err != nil {
				t.Fatalf("after it died at call %d: %v", at, err)
			}
		}
		whole(t, n, r, o)
		for i, d := range b.Drafts {
			if n.paid()[d.Problem.Start] != 1 {
				t.Fatalf("it died at call %d: part %d was posted %d times", at, i+1, n.paid()[d.Problem.Start])
			}
			if was := led[d.Problem.Start]; was != "" && was != r.Parts[i].Validator {
				t.Fatalf("it died at call %d: part %d goes to another validator", at, i+1)
			}
		}
		if !died {
			if at < 10 {
				t.Fatalf("it asks for %d things", at)
			}
			return
		}
	}
}

// It may die any number of times.
func TestRunDiesOften(t *testing.T) {
	t.Parallel()
	chance := rand.New(rand.NewPCG(7, 8))
	for range 30 {
		n, b, o := scene(t, "3", 4)
		for try := 0; ; try++ {
			if n.fuse = chance.IntN(14); try == 40 {
				n.fuse = -1
			}
			r, err := split.Run(t.Context(), n, b, o)
			if err == nil {
				whole(t, n, r, o)
				break
			}
		}
		for _, times := range n.paid() {
			if times != 1 || len(n.paid()) != 3 {
				t.Fatalf("posted %v", n.paid())
			}
		}
	}
}

// A part that fails is told; the same command posts it alone anew, under a validator that sees no other part.
func TestFailedPartIsPostedAlone(t *testing.T) {
	t.Parallel()
	for what, fail := range map[string]func(n *town, v string){
		"expired":   func(n *town, v string) { n.fails = map[string]marketv1.Status{v: marketv1.STATUS_EXPIRED} },
		"cancelled": func(n *town, v string) { n.fails = map[string]marketv1.Status{v: marketv1.STATUS_CANCELLED} },
		"stopped":   func(n *town, v string) { n.stops = map[string]bool{v: true} },
	} {
		n, b, o := scene(t, "3", 4)
		var told strings.Builder
		o.Tell = func(format string, arg ...any) { fmt.Fprintf(&told, format+"\n", arg...) }
		fail(n, validator(1))
		r, err := split.Run(t.Context(), n, b, o)
		var failed *split.PartsError
		if !errors.As(err, &failed) || !slices.Equal(failed.Failed, []int{2}) || r.Parts[1].Failed == "" || strings.Contains(r.Parts[1].Progress, "waits") || r.Outputs != nil || !strings.Contains(told.String(), "posts this part alone anew") {
			t.Fatalf("%s: %v, %+v, %s", what, err, r, told.String())
		}
		if r, err = split.Run(t.Context(), n, b, o); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		whole(t, n, r, o)
		if len(n.orders) != 4 || n.paid()[b.Drafts[1].Problem.Start] != 2 || r.Parts[1].Validator != validator(3) {
			t.Errorf("%s: %d orders, %+v", what, len(n.orders), r.Parts)
		}
	}
}

// With no other validator a part goes back to where it failed, and never to one that has another part.
func TestFailedPartGoesBack(t *testing.T) {
	t.Parallel()
	n, b, o := scene(t, "3", 3)
	n.stops = map[string]bool{validator(2): true}
	if _, err := split.Run(t.Context(), n, b, o); err == nil {
		t.Fatal("a part that ended early has results")
	}
	n.stops = nil
	r, err := split.Run(t.Context(), n, b, o)
	if err != nil || r.Parts[2].Validator != validator(2) {
		t.Fatalf("%v, %+v", err, r)
	}
	whole(t, n, r, o)
}

// Owners stay apart, and too few of them are told of before anything is posted.
func TestTooFewOwners(t *testing.T) {
	t.Parallel()
	n, b, o := scene(t, "3", 3)
	n.owners = map[string]string{validator(0): "firm", validator(1): "firm"}
	if _, err := split.Run(t.Context(), n, b, o); err == nil || !strings.Contains(err.Error(), "part 3 of 3 finds no validator: offers of 2 owners") || len(n.orders) > 0 {
		t.Fatalf("%v, %d orders", err, len(n.orders))
	}
	n.prices[validator(3)] = 9
	r, err := split.Run(t.Context(), n, b, o)
	if err != nil {
		t.Fatal(err)
	}
	whole(t, n, r, o)
	if r.Parts[0].Validator != validator(0) || r.Parts[1].Validator != validator(2) || r.Parts[2].Validator != validator(3) {
		t.Errorf("%+v", r.Parts)
	}
}

// A price that is too low for one part is told as such, with what is enough for all. With that, all are taken.
func TestPriceTooLow(t *testing.T) {
	t.Parallel()
	for _, enough := range []bool{false, true} {
		n, b, o := scene(t, "3", 3)
		look, err := split.Foresee(t.Context(), n, b, true)
		if err != nil || look.Met() != nil || look.Price != 1*3+2*2+3*2 || look.Enough != 21 { // of 7 runs the last part's 2 have to give 6
			t.Fatalf("%+v, %v", look, err)
		}
		most := look.Enough
		if !enough {
			most = look.Price
		}
		prices, err := parts.Prices(most, b.Ranges)
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range b.Drafts {
			d.Terms.MaxPrice = prices[i]
		}
		r, err := split.Run(t.Context(), n, b, o)
		if enough {
			if err != nil {
				t.Fatal(err)
			}
			whole(t, n, r, o)
		} else if err == nil || !strings.Contains(err.Error(), "costs more than the order pays") || !strings.Contains(err.Error(), "tally cost tells") || len(n.orders) > 0 {
			t.Fatalf("%v, %d orders", err, len(n.orders))
		}
	}
}

// Validators that are named are taken if they take the parts, unless one owner has two of them.
func TestNamedValidators(t *testing.T) {
	t.Parallel()
	wish := fmt.Sprintf("[%s, %s]", validator(3), validator(1))
	n, b, o := scene(t, wish, 4)
	look, err := split.Foresee(t.Context(), n, b, false)
	if err != nil || look.Met() != nil || look.Parts[0].Validator != validator(3) || look.Price != 4*4+2*3 || look.MaxPrice != 1000 || look.Deposit != 20 {
		t.Fatalf("%+v, %v", look, err)
	}
	n.owners = map[string]string{validator(3): "firm", validator(1): "firm"}
	if _, err := split.Run(t.Context(), n, b, o); err == nil || !strings.Contains(err.Error(), "name another") || len(n.orders) > 0 {
		t.Fatalf("%v, %d orders", err, len(n.orders))
	}
	if look, err := split.Foresee(t.Context(), n, b, false); err != nil || look.Met() == nil || !strings.Contains(look.Refused, "name another") {
		t.Fatalf("%+v, %v", look, err)
	}
	n.owners = nil
	_, strange, so := scene(t, fmt.Sprintf("[%s, %s]", validator(3), validator(77)), 4)
	if _, err := split.Run(t.Context(), n, strange, so); err == nil || !strings.Contains(err.Error(), "part 2 of 2: "+validator(77)) || len(n.orders) > 0 {
		t.Fatalf("one that offers nothing: %v, %d orders", err, len(n.orders))
	}
	r, err := split.Run(t.Context(), n, b, o)
	if err != nil || r.Parts[0].Validator != validator(3) || r.Parts[1].Validator != validator(1) {
		t.Fatalf("%+v, %v", r, err)
	}
	whole(t, n, r, o)
	// Named otherwise, who has had one part gets another: people are told what that means.
	_, b, turned := scene(t, fmt.Sprintf("[%s, %s]", validator(1), validator(2)), 0)
	var told strings.Builder
	turned.Home, turned.Tell = o.Home, func(format string, arg ...any) { fmt.Fprintf(&told, format+"\n", arg...) }
	r, err = split.Run(t.Context(), n, b, turned)
	if err != nil || len(n.orders) != 4 || strings.Count(told.String(), "WARNING: "+validator(1)+", to whom part 1 goes, has had the records of part 2") != 1 || strings.Count(told.String(), "WARNING") != 1 {
		t.Fatalf("%v, %d orders\n%s", err, len(n.orders), told.String())
	}
	whole(t, n, r, turned)
}

// With --again all parts are posted anew; without, none.
func TestAgain(t *testing.T) {
	t.Parallel()
	n, b, o := scene(t, "3", 4)
	for i, want := range []int{3, 3, 6} {
		o.Out, o.Again = filepath.Join(o.Home, fmt.Sprint("out", i)), i == 2
		r, err := split.Run(t.Context(), n, b, o)
		if err != nil || len(n.orders) != want {
			t.Fatalf("%d: %d orders, %v", i, len(n.orders), err)
		}
		whole(t, n, r, o)
	}
	if _, err := split.Run(t.Context(), n, b, o); err == nil || !strings.Contains(err.Error(), "is not empty") || len(n.orders) != 6 {
		t.Errorf("%d orders: %v", len(n.orders), err)
	}
	o.Again, o.Force = false, true
	r, err := split.Run(t.Context(), n, b, o)
	if err != nil || len(n.orders) != 6 {
		t.Fatalf("%d orders: %v", len(n.orders), err)
	}
	whole(t, n, r, o)
}

// Where the results of a part are lost, --again posts that part anew, and none of which the results are here.
func TestLostResults(t *testing.T) {
	t.Parallel()
	n, b, o := scene(t, "3", 3)
	n.lost = validator(1)
	for range 2 {
		if r, err := split.Run(t.Context(), n, b, o); err == nil || r.Parts[1].Failed == "" || len(n.orders) != 3 {
			t.Fatalf("%v, %d orders", err, len(n.orders))
		}
	}
	n.lost, o.Again = "", true
	r, err := split.Run(t.Context(), n, b, o)
	if err != nil || len(n.orders) != 4 || n.paid()[b.Drafts[1].Problem.Start] != 2 {
		t.Fatalf("%v, %v", err, n.paid())
	}
	whole(t, n, r, o)
}

// Another price is no other order: who waits at the old one is told how to have the new one, and once it has ended gets it.
func TestPriceIsRaised(t *testing.T) {
	t.Parallel()
	n, b, o := scene(t, "3", 4)
	n.hold = make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, stop)
	if _, err := split.Run(ctx, n, b, o); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(n.hold)
	for _, d := range b.Drafts {
		d.Terms.MaxPrice *= 2
	}
	var told strings.Builder
	o.Tell = func(format string, arg ...any) { fmt.Fprintf(&told, format+"\n", arg...) }
	n.orders[1].status = marketv1.STATUS_CANCELLED
	r, err := split.Run(t.Context(), n, b, o)
	if err != nil || len(n.orders) != 4 || n.orders[3].order.Conditions.MaxPrice != b.Drafts[1].Terms.MaxPrice {
		t.Fatalf("%v, %d orders", err, len(n.orders))
	}
	if strings.Count(told.String(), "cancel-order") != 2 {
		t.Error(told.String())
	}
	whole(t, n, r, o)
}

// Nobody posts a part who cannot pay for all.
func TestPoorPostNothing(t *testing.T) {
	t.Parallel()
	n, b, o := scene(t, "3", 4)
	n.poor = &consume.PoorError{}
	if _, err := split.Run(t.Context(), n, b, o); !errors.Is(err, n.poor) || len(n.orders) > 0 {
		t.Fatalf("%d orders: %v", len(n.orders), err)
	}
}

// Ctrl-C ends a run at once, with word of how to go on; a second one meanwhile is refused.
func TestInterruption(t *testing.T) {
	t.Parallel()
	n, b, o := scene(t, "3", 4)
	n.hold = make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	var told strings.Builder
	var mu sync.Mutex
	waiting := 0
	o.Tell = func(format string, arg ...any) {
		mu.Lock()
		defer mu.Unlock()
		line := fmt.Sprintf(format, arg...)
		fmt.Fprintln(&told, line)
		if strings.Contains(line, "waits for an offer") {
			if waiting++; waiting == 3 {
				if _, err := split.Run(t.Context(), n, b, split.Options{Home: o.Home, Out: o.Out, Tell: o.Tell}); err == nil || !strings.Contains(err.Error(), "follows this order") {
					t.Errorf("two at once: %v", err)
				}
				stop()
			}
		}
	}
	r, err := split.Run(ctx, n, b, o)
	if !errors.Is(err, context.Canceled) || len(r.Parts) != 3 || r.Parts[0].Order == "" || !strings.Contains(told.String(), "takes all of them up") || !strings.Contains(told.String(), "of these parts, or nobody could tell: 1, 2, 3") {
		t.Fatalf("%v, %+v\n%s", err, r, told.String())
	}
	close(n.hold)
	if r, err = split.Run(t.Context(), n, b, o); err != nil || len(n.orders) != 3 {
		t.Fatalf("%d orders: %v", len(n.orders), err)
	}
	whole(t, n, r, o)
}
