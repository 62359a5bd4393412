package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/x/market"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/engine/cpu"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	supplyv1 "github.com/tally-network/tally/gen/tally/supply/v1"
	"github.com/tally-network/tally/internal/testkit/nettest"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/desk"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/role"
	"github.com/tally-network/tally/node/runner"
)

const (
	// soakPart is the variable of the environment that makes a test's process a part of a network,
	// to be killed.
	soakPart = "TALLY_SOAK_PART"
	// soakOrders asks for a soak of so many orders at once.
	soakOrders = "TALLY_SOAK_ORDERS"
)

// part is what such a process does: it runs the role of a home, or buys from it.
type part struct {
	Home  string
	Batch string // a folder with the order of a batch
	Buys  []int  // numbers of orders; empty: it runs the role
}

// bought is what came of an order.
type bought struct {
	Number int
	Order  canon.Hash
	Root   canon.Hash
	Reason string // why it ended without its whole result
}

// runPart does a part, and returns the status that the process ends with.
func runPart(text string) int {
	var p part
	err := json.Unmarshal([]byte(text), &p)
	if err == nil {
		err = p.run(context.Background(), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// run does the part until it is killed, or all is bought.
func (p part) run(ctx context.Context, out io.Writer) error {
	if len(p.Buys) > 0 {
		return p.buyAll(ctx, out)
	}
	h, err := home.Open(p.Home)
	if err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	if h.Settings.Role == home.Validator {
		if _, err := h.StartNode(ctx, log); err != nil {
			return err
		}
	}
	env, err := h.Env(ctx, home.Options{Log: log})
	if err != nil {
		return err
	}
	return runner.Run(ctx, h, env)
}

// buyAll brings all orders to their ends, through the desk of a home.
func (p part) buyAll(ctx context.Context, out io.Writer) error {
	s, err := home.LoadSettings(p.Home)
	if err != nil {
		return err
	}
	at, err := desk.Open(ctx, desk.Options{Dir: p.Home, Open: func() (*home.Home, error) { return home.Open(p.Home) }})
	if err != nil {
		return err
	}
	c, err := client.Dial(ctx, client.Endpoints{RPC: s.Node.RPC, GRPC: s.Node.GRPC})
	if err != nil {
		return err
	}
	env := role.New(role.Parts{Chain: c, Log: slog.New(slog.DiscardHandler)})
	all, errs := make([]bought, len(p.Buys)), make([]error, len(p.Buys))
	var wait sync.WaitGroup
	for i, number := range p.Buys {
		wait.Go(func() { all[i], errs[i] = p.buy(ctx, at, env, number) })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(out).Encode(all), at.Close(), c.Close())
}

// buy takes an order up where it stands, or posts it.
func (p part) buy(ctx context.Context, at *desk.Desk, env *role.Env, number int) (b bought, err error) {
	d, err := p.draft(ctx, number)
	if err != nil {
		return b, err
	}
	as, err := at.Buyer(ctx)
	if err != nil {
		return b, err
	}
	o, err := d.Order(as)
	if err != nil {
		return b, err
	}
	earlier, nonce, err := consume.FindEarlier(ctx, env, &o)
	if err != nil {
		return b, err
	}
	if o.Nonce = nonce; earlier != nil {
		o = earlier.Order
		err = at.Keep(ctx, &o, d.Body)
	} else {
		err = at.Post(ctx, &o, d.Body)
	}
	if err != nil {
		return b, fmt.Errorf("order %d: %w", number, err)
	}
	last, err := consume.Follow(ctx, env, o.ID(), func(consume.Progress) bool { return false })
	if err != nil {
		return b, err
	}
	return bought{number, o.ID(), last.Lease.FinalRoot(), last.Lease.Reason}, nil
}

// draft returns an order by its number: every third is a batch.
func (p part) draft(ctx context.Context, number int) (*consume.Draft, error) {
	if number%3 < 2 {
		return nettest.NewDraft(ctx, func(s *consume.Spec) {
			s.Problem.Rounds, s.Problem.Seed = 1+number%2, uint64(number)
			soaked(&s.Conditions, number)
		})
	}
	s, err := consume.ReadBatchSpec(filepath.Join(p.Batch, "order.yaml"))
	if err != nil {
		return nil, err
	}
	s.Conditions = nettest.Terms()
	soaked(&s.Conditions, number)
	return consume.NewBatchDraft(ctx, s, cpu.New(1))
}

// soaked are conditions under which an order outlives kills. No two orders have the same.
func soaked(c *consume.SpecConditions, number int) {
	c.MaxPrice += consume.Amount(number)
	c.Expires, c.UnitTimeout = consume.Duration(time.Hour), consume.Duration(30*time.Second)
}

// process is a part that is begun again whenever it is killed.
type process struct {
	part
	mu     sync.Mutex
	cmd    *exec.Cmd // nil before it was begun
	killed bool
	kills  int
}

// keep runs the process until it ends by itself, and returns what it printed.
func (p *process) keep(ctx context.Context) ([]byte, error) {
	text, err := json.Marshal(p.part)
	if err != nil {
		return nil, err
	}
	for {
		var out, trouble bytes.Buffer
		p.mu.Lock()
		p.cmd = exec.CommandContext(ctx, os.Args[0])
		p.cmd.Env = append(os.Environ(), soakPart+"="+string(text))
		p.cmd.Stdout, p.cmd.Stderr, p.killed = &out, &trouble, false
		err := p.cmd.Start()
		p.mu.Unlock()
		if err != nil {
			return nil, err
		}
		err = p.cmd.Wait()
		p.mu.Lock()
		killed := p.killed
		p.mu.Unlock()
		switch {
		case err == nil || ctx.Err() != nil:
			return out.Bytes(), nil
		case !killed:
			return nil, fmt.Errorf("%s: %w\n%s", p.Home, err, &trouble)
		}
	}
}

// kill ends the process as a power cut would.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil && p.cmd.Process != nil && p.cmd.Process.Kill() == nil {
		p.killed = true
		p.kills++
	}
}

// Many orders at once, of several homes, each role in a process of its own that is killed again and
// again: all settle with what an honest run gives, none is posted twice, and the money adds up.
func TestSoak(t *testing.T) {
	orders, err := strconv.Atoi(os.Getenv(soakOrders))
	if err != nil || orders < soakHomes {
		t.Skipf("runs alone: make soak, or %s=60", soakOrders)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("%d orders, seed %d", orders, seed)
	ctx, stop := context.WithTimeout(t.Context(), 25*time.Minute)
	s := &soaking{t: t, ctx: ctx, orders: orders, failed: make(chan error, 1), batch: scores(t)}
	defer s.running.Wait()
	defer stop()
	s.start()
	before := s.stakes()
	begun := time.Now()
	all := s.buy(rand.New(rand.NewPCG(seed, 0)))
	t.Logf("%d orders were settled in %v; %d roles and %d buyers were killed", orders, time.Since(begun).Round(time.Second), kills(s.roles), kills(s.buyers))
	s.check(all, before)
}

// soakHomes is from how many homes orders come.
const soakHomes = 4

// soaking is a network whose roles are processes.
type soaking struct {
	t             *testing.T
	ctx           context.Context
	orders        int
	batch         string
	homes         []string // of consumers
	roles, buyers []*process
	running       sync.WaitGroup
	failed        chan error
	chain         *client.Client
}

// start makes the homes, starts the roles, and gives the consumers money.
func (s *soaking) start() {
	c := devnet.Config{
		Dir: s.t.TempDir(), Validators: 4, Providers: 4, Challengers: 1, MaxLeases: uint32(s.orders),
		CommitTimeout: 200 * time.Millisecond, EmptyInterval: time.Second,
	}
	s.must(devnet.Create(c))
	for kind, n := range map[home.Role]int{home.Validator: c.Validators, home.Provider: c.Providers, home.Challenger: c.Challengers} {
		for i := range n {
			dir := filepath.Join(c.Dir, fmt.Sprintf("%s-%d", kind, i))
			s.roles = append(s.roles, s.begin(part{Home: dir}, nil))
		}
	}
	rich := filepath.Join(c.Dir, "consumer")
	settings, err := home.LoadSettings(rich)
	s.must(err)
	s.chain, err = client.Dial(s.ctx, client.Endpoints{RPC: settings.Node.RPC, GRPC: settings.Node.GRPC})
	s.must(err)
	s.t.Cleanup(func() { _ = s.chain.Close() })
	h, err := home.Open(rich)
	s.must(err)
	env, err := h.Env(s.ctx, home.Options{})
	s.must(err)
	s.homes = []string{rich}
	var gifts []sdk.Msg
	for i := range soakHomes - 1 {
		dir := filepath.Join(c.Dir, fmt.Sprintf("buyer-%d", i))
		_, err := home.Create(dir, home.Settings{Role: home.Consumer, Chain: settings.Chain, Node: settings.Node, Threads: 1})
		s.must(err)
		address, err := home.Address(dir)
		s.must(err)
		gifts = append(gifts, &banktypes.MsgSend{FromAddress: h.Address, ToAddress: address, Amount: coin.Of(100_000_000_000)})
		s.homes = append(s.homes, dir)
	}
	_, err = env.Account.Send(s.ctx, gifts...)
	s.must(errors.Join(err, h.Close()))
	for len(s.stakes()) < c.Validators+c.Providers+c.Challengers {
		_, err := s.chain.Next(s.ctx, s.chain.Head().Height)
		s.must(err)
	}
}

func (s *soaking) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// begin keeps a process running until all is over; ended gets what it printed.
func (s *soaking) begin(p part, ended func([]byte)) *process {
	x := &process{part: p}
	s.running.Go(func() {
		out, err := x.keep(s.ctx)
		switch {
		case err == nil && ended == nil && s.ctx.Err() == nil:
			err = fmt.Errorf("%s ended", p.Home)
		case err == nil && ended != nil:
			ended(out)
		}
		if err != nil {
			select {
			case s.failed <- err:
			default:
			}
		}
	})
	return x
}

// buy has all orders bought, and processes killed meanwhile. Of the first home, two processes buy.
func (s *soaking) buy(random *rand.Rand) (all []bought) {
	results := make(chan []byte)
	shares := make([][]int, soakHomes+1)
	for number := range s.orders {
		i := number % soakHomes
		if i == 0 && number/soakHomes%2 == 1 {
			i = soakHomes
		}
		shares[i] = append(shares[i], number)
	}
	for i, numbers := range shares {
		p := part{Home: s.homes[i%soakHomes], Batch: s.batch, Buys: numbers}
		s.buyers = append(s.buyers, s.begin(p, func(out []byte) { results <- out }))
	}
	for range shares {
		for got := false; !got; {
			select {
			case out := <-results:
				var some []bought
				if err := json.Unmarshal(out, &some); err != nil {
					s.t.Fatalf("%v, after %d orders: %q", err, len(all), out)
				}
				all, got = append(all, some...), true
			case err := <-s.failed:
				s.t.Fatal(err)
			case <-time.After(time.Duration(1+random.Int64N(5_000)) * time.Millisecond):
				both := slices.Concat(s.roles, s.buyers)
				both[random.IntN(len(both))].kill()
			}
		}
	}
	return all
}

// kills counts how often processes were killed.
func kills(all []*process) (n int) {
	for _, p := range all {
		n += p.kills
	}
	return n
}

// stakes returns the stakes of all who are registered.
func (s *soaking) stakes() map[string]uint64 {
	r, err := providerv1.NewQueryClient(s.chain.Conn).Peers(s.ctx, &providerv1.QueryPeersRequest{})
	s.must(err)
	out := map[string]uint64{}
	for _, p := range r.Peers {
		out[p.Account] = p.Stake
	}
	return out
}

// check compares what came of all orders with honest runs, and counts the money.
func (s *soaking) check(all []bought, before map[string]uint64) {
	if len(all) != s.orders {
		s.t.Errorf("%d orders have an end, want %d", len(all), s.orders)
	}
	want := part{Batch: s.batch}
	for _, b := range all {
		d, err := want.draft(s.ctx, b.Number)
		s.must(err)
		root, err := d.Honest(s.ctx)
		s.must(err)
		if b.Root != root || b.Reason != "" {
			s.t.Errorf("order %d ended (%s) with %v, an honest run gives %v", b.Number, b.Reason, b.Root, root)
		}
	}
	posted := 0
	for _, dir := range s.homes {
		address, err := home.Address(dir)
		s.must(err)
		orders, err := consume.Orders(s.ctx, s.chain.Conn, address, 10*s.orders)
		s.must(err)
		posted += len(orders)
	}
	if posted != s.orders {
		s.t.Errorf("%d orders were posted, want %d", posted, s.orders)
	}
	late := uint64(0) // who is killed may be late; whoever is convicted loses more than that
	for account, n := range s.stakes() {
		if late += before[account] - n; n > before[account] || before[account]-n >= job.DefaultParams.MinBond {
			s.t.Errorf("all are honest, and the stake of %s went from %d to %d", account, before[account], n)
		}
	}
	s.t.Logf("who was killed, and late by it, has paid %d utally", late)
	r, err := supplyv1.NewQueryClient(s.chain.Conn).Check(s.ctx, &supplyv1.QueryCheckRequest{})
	if err != nil || !r.Ok {
		s.t.Errorf("the ledgers: %+v, %v", r, err)
	}
	escrow := authtypes.NewModuleAddress(market.Name).String()
	left, err := banktypes.NewQueryClient(s.chain.Conn).Balance(s.ctx, &banktypes.QueryBalanceRequest{Address: escrow, Denom: coin.Denom})
	s.must(err)
	if !left.Balance.Amount.IsZero() {
		s.t.Errorf("%v are in escrow for orders that were settled", left.Balance)
	}
}
