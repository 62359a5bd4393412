package bench

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	cmttypes "github.com/cometbft/cometbft/types"
	dbm "github.com/cosmos/cosmos-db"

	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	sdk "github.com/cosmos/cosmos-sdk/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/tally-network/tally/bench/solo"
	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/chain/vrf"
	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/policy"
	powermodule "github.com/tally-network/tally/chain/x/power"
	"github.com/tally-network/tally/chain/x/seats"
	"github.com/tally-network/tally/core/power"
	powerv1 "github.com/tally-network/tally/gen/tally/power/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/cputime"
	"github.com/tally-network/tally/internal/testkit/headers"
	"github.com/tally-network/tally/internal/testkit/spam"
	"github.com/tally-network/tally/node/devnet"
	"github.com/tally-network/tally/node/light"
)

// consensusParts are the groups of rows about consensus.
var consensusParts = []part{
	{"seats", seatRows}, {"follow", followRows}, {"blocks", intervalRows}, {"sync", syncRows},
}

func consensusRows(ctx context.Context, o Options) ([]Row, error) {
	return rowsOf(ctx, consensusParts, o)
}

// The chain on which epochs change.
const (
	allMembers, seatedMembers = 100_000, 100
	epochBlocks, epochsPlayed = 300, 3
	seatedPower               = 10_000         // ut; of others 1
	memberBond                = 10_000_000_000 // utally
	ut                        = 1_000_000      // µut
)

func seatRows(ctx context.Context, o Options) (rows []Row, err error) {
	for _, allocation := range []string{seats.Share, seats.Lots} {
		o.Tell("plays %d epochs of %d members, %d of them seated, by %s", epochsPlayed, allMembers, seatedMembers, allocation)
		ends, whole, err := epochChange(ctx, allocation)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("epoch of %d members, %d seated, by %s: longest ", allMembers, seatedMembers, allocation)
		rows = append(rows, row(name+"EndBlock", "ms", ends).atMost(20), row(name+"block, state committed", "ms", whole))
	}
	key, value := solo.Seeded("member"), make([]byte, 32)
	_, proof, err := vrf.Prove(key, wire.SeatInput(value, 1))
	if err != nil {
		return nil, err
	}
	s, err := median(ctx, func() error {
		_, err := vrf.Verify(key[32:], wire.SeatInput(value, 1), proof)
		return err
	})
	return append(rows, row("check of the proof of one seat", "ms", 1000*s).atMost(2)), err
}

// epochChange returns what the longest block of an epoch takes, and the longest end of one, in ms. Of each block that is
// the least of all epochs, which others on this machine disturb least.
func epochChange(ctx context.Context, allocation string) (end, whole float64, err error) {
	measured := solo.MeasureEnds()
	s, key, err := newCrowd(allocation)
	if err != nil {
		return 0, 0, err
	}
	var ends, blocks [epochBlocks]time.Duration
	self := sdk.AccAddress(key.PubKey().Address())
	for i := range epochsPlayed * epochBlocks {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		tx, err := s.SignFor(key, 0, solo.Gas, banktypes.NewMsgSend(self, self, coin.Of(1))) // an idle chain draws nothing
		if err != nil {
			return 0, 0, err
		}
		begun := time.Now()
		done, err := s.Make(time.Second, tx)
		if err == nil && done[0].Code != 0 {
			err = fmt.Errorf("a transfer is refused: %s", done[0].Log)
		}
		if err != nil {
			return 0, 0, err
		}
		least := func(of *time.Duration, took time.Duration) {
			if *of == 0 || took < *of {
				*of = took
			}
		}
		least(&blocks[i%epochBlocks], time.Since(begun))
		least(&ends[i%epochBlocks], measured.Took())
	}
	var now seatsv1.QueryStatusResponse
	if err := s.Ask("/tally.seats.v1.Query/Status", &seatsv1.QueryStatusRequest{}, &now); err != nil {
		return 0, 0, err
	}
	if now.Set.Epoch+1 < epochsPlayed || len(now.Set.Seats) != seatedMembers {
		return 0, 0, fmt.Errorf("epoch %d seated %d members: nothing was measured", now.Set.Epoch, len(now.Set.Seats))
	}
	ms := func(all []time.Duration) float64 { return float64(slices.Max(all).Microseconds()) / 1000 }
	return ms(ends[:]), ms(blocks[:]), nil
}

// newCrowd begins a chain of many members with power. The first of them have the seats, and one has the key.
func newCrowd(allocation string) (*solo.Chain, *secp256k1.PrivKey, error) {
	key := secp256k1.GenPrivKeyFromSecret([]byte("member"))
	account := sdk.AccAddress(key.PubKey().Address())
	genesis, producer := solo.Genesis(account.String())
	genesis.Accounts = []app.Account{{Address: account.String(), Balance: manyPurse}}
	genesis.Epoch = epochBlocks
	genesis.Seats.Params = seats.DefaultParams()
	genesis.Seats.Params.Allocation = allocation
	genesis.Policy = policy.DefaultParams()
	genesis.Policy.Base = (seatedMembers*seatedPower + allMembers) * ut // so that power alone gives seats
	genesis.Policy.Quorum = genesis.Policy.Base / 2
	genesis.Validators[0].Votes, genesis.Validators[0].Bond = 100, memberBond
	for i := 1; i < allMembers; i++ {
		v := app.Validator{Account: crowdAccount(i), ConsensusKey: solo.Seeded(fmt.Sprint("member ", i)).Public().(ed25519.PublicKey), Bond: memberBond}
		if i < seatedMembers {
			v.Votes = 100
		}
		genesis.Validators = append(genesis.Validators, v)
	}
	s, err := solo.New(dbm.NewMemDB(), genesis, producer, func(a *app.App, state map[string]json.RawMessage) (err error) {
		powers := &powerv1.GenesisState{}
		for i, v := range genesis.Validators {
			uts, r := uint64(1), power.Record{}
			if i < seatedMembers {
				uts = seatedPower
			}
			if err := r.Training.Credit(uts*ut, 0); err != nil {
				return err
			}
			powers.Records = append(powers.Records, powermodule.ToProto(v.Account, &r))
		}
		state[powermodule.Name], err = a.Codec.MarshalJSON(powers)
		return err
	})
	return s, key, err
}

func crowdAccount(i int) string {
	return sdk.AccAddress(binary.BigEndian.AppendUint64(make([]byte, 12), uint64(i))).String()
}

// The chain of headers that is followed.
const (
	setMembers, membersLeave = 100, 25
	setChanges               = 1_000
	lookedBefore             = 150      // blocks, of which an epoch has 100
	mostFollowed             = 64 << 10 // bytes
	longAgo                  = 90 * 100 // blocks: fifteen hours
)

// followRows are what a verifier takes to reach the newest block from one that it trusts.
func followRows(ctx context.Context, o Options) ([]Row, error) {
	o.Tell("follows a set of %d that changes by a quarter, %d times", setMembers, setChanges)
	chain := headers.New("tally-bench", setMembers, membersLeave, time.Unix(1_800_000_000, 0))
	last := (setChanges + 1) * chain.Blocks
	none, err := follow(ctx, chain, 1, chain.Blocks/2) // before the first change
	if err != nil {
		return nil, err
	}
	changed, err := follow(ctx, chain, last-lookedBefore, last)
	if err != nil {
		return nil, err
	}
	aged, err := follow(ctx, chain, last-longAgo, last)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("verify after %d changes of the set, looked %d blocks before: ", setChanges, lookedBefore)
	return []Row{
		row(name+"more time than after none", "s", changed.seconds-none.seconds).atMost(1),
		row(name+"more bytes than after none", "B", float64(changed.Bytes-none.Bytes)).atMost(mostFollowed),
		row("verify by whoever looked 15 h before: time", "s", aged.seconds),
		row("verify by whoever looked 15 h before: bytes", "B", float64(aged.Bytes)),
	}, nil
}

// followed is what a way took.
type followed struct {
	light.Stats
	seconds float64
}

// follow follows a chain from a trusted block to another. What inventing the blocks takes does not count.
func follow(ctx context.Context, chain *headers.Chain, from, to int64) (f followed, err error) {
	var invented time.Duration
	block := func(height int64) *cmttypes.LightBlock {
		begun := time.Now()
		defer func() { invented += time.Since(begun) }()
		return chain.Block(height)
	}
	trusted, newest := light.FromLightBlock(block(from)), block(to)
	invented = 0
	way := light.Follower{
		Block: func(_ context.Context, height int64) (*cmttypes.LightBlock, error) { return block(height), nil },
		Now:   func() time.Time { return chain.Time(to + 1) },
	}
	begun := time.Now()
	f.Stats, err = way.Follow(ctx, trusted, nil, newest)
	f.seconds = (time.Since(begun) - invented).Seconds()
	return f, err
}

// The networks whose blocks are timed.
const (
	watched     = 40 * time.Second // in each state
	flooders    = 8                // accounts, of which each may have eight transactions waiting
	flooderGas  = 100_000
	flooderPays = 100_000 // utally: fees, and more
)

// intervalRows are the intervals between blocks on devnets, which do nothing, or get more transfers than a few
// accounts may make.
func intervalRows(ctx context.Context, o Options) (rows []Row, err error) {
	for _, validators := range []int{4, 20} {
		more, err := blocksOf(ctx, o, validators)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

func blocksOf(ctx context.Context, o Options, validators int) (rows []Row, err error) {
	dir, err := os.MkdirTemp("", "tally-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	n, err := devnet.Start(ctx, devnet.Config{Dir: dir, Validators: validators})
	if err != nil {
		return nil, err
	}
	defer func() { _ = n.Stop() }()
	if err := n.Ready(ctx); err != nil {
		return nil, err
	}
	o.Tell("watches a devnet of %d validators for %s", validators, watched)
	idle, err := watchBlocks(ctx, n, fmt.Sprintf("%d validators, idle: ", validators))
	if err != nil {
		return nil, err
	}
	var all []*spam.Spammer
	for i := range flooders {
		s, err := spam.New(ctx, n.Validators[i%validators].Env.Chain, n.Consumer.Env.Account, flooderPays, flooderGas)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	o.Tell("floods it with transfers for %s", watched)
	flood, stop := context.WithCancel(ctx)
	over := make(chan int, 1)
	go func() { over <- spam.Flood(flood, all...) }()
	loaded, err := watchBlocks(ctx, n, fmt.Sprintf("%d validators, flooded: ", validators))
	stop()
	<-over
	return append(idle, loaded...), err
}

// watchBlocks times the blocks of a network by their headers.
func watchBlocks(ctx context.Context, n *devnet.Network, name string) ([]Row, error) {
	chain := n.Consumer.Env.Chain
	first, used := chain.Head().Height, cputime.Used()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(watched):
	}
	last, share := chain.Head().Height, (cputime.Used()-used).Seconds()/watched.Seconds()
	var intervals []float64
	var before time.Time
	txs := 0
	for height := first; height <= last; height++ {
		b, err := chain.RPC.Block(ctx, &height)
		if err != nil {
			return nil, err
		}
		if height > first {
			intervals = append(intervals, b.Block.Time.Sub(before).Seconds())
			txs += len(b.Block.Txs)
		}
		before = b.Block.Time
	}
	if len(intervals) == 0 {
		return nil, fmt.Errorf("no block in %s: is this machine busy with something else?", watched)
	}
	slices.Sort(intervals)
	return []Row{
		row(name+"block interval, p50", "s", intervals[len(intervals)/2]),
		row(name+"block interval, p99", "s", intervals[len(intervals)*99/100]),
		row(name+"transactions", "/s", float64(txs)/watched.Seconds()),
		row(name+"CPU", "% of a core", 100*share),
	}, nil
}
