package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/market"
	"github.com/tally-network/tally/core/job"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
	"github.com/tally-network/tally/node/client"
)

// crasher is the variable of the environment that makes a test's process a poster of orders, to be
// killed.
const crasher = "TALLY_CLIENT_CRASH"

// posting is what such a process does.
type posting struct {
	At    client.Endpoints
	First uint64 // nonce
}

// setSize is how many orders are posted at once.
const setSize = 24

func TestMain(m *testing.M) {
	text := os.Getenv(crasher)
	if text == "" {
		os.Exit(m.Run())
	}
	var p posting
	err := json.Unmarshal([]byte(text), &p)
	if err == nil {
		err = p.run(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run does what every role does: it looks what the chain has, and sends what is missing.
func (p posting) run(ctx context.Context) (err error) {
	c, err := client.Dial(ctx, p.At)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	account := c.Account(worktest.Consumer.Key)
	account.Messages = 2 // so that a set needs more transactions than may be under way
	errs := make([]error, setSize)
	var wait sync.WaitGroup
	for i := range errs {
		wait.Go(func() {
			o := p.order(i)
			_, unknown := marketv1.NewQueryClient(c.Conn).Order(ctx, &marketv1.QueryOrderRequest{Order: o.ID().String()})
			if unknown == nil {
				return
			}
			if _, err := account.Send(ctx, worktest.Post(o)); !errors.Is(err, market.ErrPosted) {
				errs[i] = err
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

func (p posting) order(i int) job.Order {
	o := worktest.Order()
	o.Nonce, o.Conditions.Expires = p.First+uint64(i), time.Hour.Milliseconds()
	return o
}

// A process is killed at random moments around its broadcasts, and begins again without a memory
// of its own. Every order is posted in the end, and locks its money once.
func TestCrashAroundBroadcast(t *testing.T) {
	const sets, kills = 5, 2
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c := newChain(t, 150*time.Millisecond, chaintest.Fund(worktest.Purse, worktest.Consumer.Name))
	rules, err := workv1.NewQueryClient(c.Conn).Params(t.Context(), &workv1.QueryParamsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	p, price := wire.ParamsFromProto(rules.Params), worktest.Order().Conditions.MaxPrice
	deposit, err := p.Deposit(price)
	if err != nil {
		t.Fatal(err)
	}
	consumer, escrow := worktest.Consumer.String(), authtypes.NewModuleAddress(market.Name).String()
	had, existed, killed := c.balance(consumer), c.supply(), 0
	for set := range sets {
		for left, done := kills, false; !done; left-- {
			after := time.Duration(0)
			if left > 0 {
				after = time.Duration(1 + random.Int64N(int64(400*time.Millisecond)))
			}
			if done = c.crash(posting{c.at, uint64(set * setSize)}, after); !done {
				killed++
				t.Logf("killed %v after a first broadcast, with %d orders in the chain", after.Round(time.Millisecond), c.balance(escrow)/(price+deposit))
			}
		}
	}
	locked, fees := sets*setSize*(price+deposit), existed-c.supply()
	if got := c.balance(escrow); got != locked {
		t.Errorf("%d orders lock %d utally, want %d", sets*setSize, got, locked)
	}
	if has := c.balance(consumer); has+locked+fees != had {
		t.Errorf("the consumer had %d utally, locked %d, paid fees of %d, and has %d", had, locked, fees, has)
	}
	if killed == 0 { // how many depends on what else the machine does
		t.Error("no process was killed")
	}
}

// crash runs a posting in a process, and kills it so long after its first broadcast; 0: never. It
// reports whether it ended by itself.
func (c *chain) crash(p posting, after time.Duration) (done bool) {
	c.t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		c.t.Fatal(err)
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crasher+"="+string(text))
	var trouble strings.Builder
	child.Stderr = &trouble
	before := c.arrived.Load()
	if err := child.Start(); err != nil {
		c.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var first time.Time
	for {
		select {
		case err := <-ended:
			if err != nil {
				c.t.Fatalf("%v\n%s", err, &trouble)
			}
			return true
		case <-tick.C:
		}
		if first.IsZero() && c.arrived.Load() > before {
			first = time.Now()
		}
		if after > 0 && !first.IsZero() && time.Since(first) > after {
			_ = child.Process.Kill() // it may have ended
			return <-ended == nil
		}
	}
}

func (c *chain) balance(account string) uint64 {
	c.t.Helper()
	r, err := banktypes.NewQueryClient(c.Conn).Balance(context.Background(), &banktypes.QueryBalanceRequest{Address: account, Denom: coin.Denom})
	if err != nil {
		c.t.Fatal(err)
	}
	return r.Balance.Amount.Uint64()
}

// supply returns all utally: fees are burnt.
func (c *chain) supply() uint64 {
	c.t.Helper()
	r, err := banktypes.NewQueryClient(c.Conn).SupplyOf(context.Background(), &banktypes.QuerySupplyOfRequest{Denom: coin.Denom})
	if err != nil {
		c.t.Fatal(err)
	}
	return r.Amount.Amount.Uint64()
}
