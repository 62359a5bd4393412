package seats_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	cmttypes "github.com/cometbft/cometbft/types"
	dbm "github.com/cosmos/cosmos-db"

	"cosmossdk.io/log/v2"

	"github.com/cosmos/cosmos-sdk/runtime"
	store "github.com/cosmos/cosmos-sdk/store/v2"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/module"
	"github.com/tally-network/tally/chain/x/seats"
	"github.com/tally-network/tally/core/power"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

// BenchmarkTurns plays ten thousand turns of a hundred members, of which finding one plays at most as many.
func BenchmarkTurns(b *testing.B) {
	var all []*cmttypes.Validator
	for i := range 100 {
		all = append(all, cmttypes.NewValidator(cmted25519.PubKey(chaintest.Named(fmt.Sprint("v", i)).PeerKey()), int64(i*i+1)))
	}
	set := cmttypes.NewValidatorSet(all)
	for b.Loop() {
		if _, err := seats.Turned(set, 10_000, seats.Forever); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEpochChange draws among a hundred thousand members, of whom a hundred have votes. It tells the longest block.
func BenchmarkEpochChange(b *testing.B) {
	for _, allocation := range []string{seats.Share, seats.Lots} {
		b.Run(allocation, func(b *testing.B) {
			var took [300]time.Duration // of each block of an epoch: the least, which others on this machine disturb least
			ctx, k := multitude(b, allocation, 100_000)
			for height := int64(301); b.Loop(); height += 300 {
				for h := range int64(300) {
					block, write := ctx.WithBlockHeight(height + h).CacheContext()
					begun := time.Now()
					if _, err := k.EndBlock(block); err != nil {
						b.Fatal(err)
					}
					if d := time.Since(begun); took[h] == 0 || d < took[h] {
						took[h] = d
					}
					write()
					ctx.MultiStore().(storetypes.CommitMultiStore).Commit()
				}
			}
			b.ReportMetric(float64(slices.Max(took[:]).Microseconds())/1_000, "ms-longest")
		})
	}
}

// multitude returns a keeper with many members, of whom the first hundred have votes and much power.
func multitude(b *testing.B, allocation string, n int) (sdk.Context, *seats.Keeper) {
	b.Helper()
	_, _, cdc := chaintest.Store(b)
	key, db := storetypes.NewKVStoreKey(seats.Name), dbm.NewMemDB()
	cms := store.NewCommitMultiStore(db, log.NewNopLogger()) // which commits, as that of an app does
	for _, x := range []storetypes.StoreKey{key, module.BlockStore} {
		cms.MountStoreWithDB(x, storetypes.StoreTypeIAVL, nil)
	}
	if err := cms.LoadLatestVersion(); err != nil {
		b.Fatal(err)
	}
	ctx := sdk.NewContext(cms, cmtproto.Header{ChainID: chaintest.ChainID}, false, log.NewNopLogger())
	k := seats.NewKeeper(cdc, runtime.NewKVStoreService(key), seats.Needs{
		Bank: chaintest.NewBank(), Founders: nobody{},
		Power: &powers{of: func(a sdk.AccAddress) *power.Record {
			r, uts := &power.Record{}, uint64(1)
			if binary.BigEndian.Uint32(a) < 100 {
				uts = 10_000
			}
			if err := r.Training.Credit(uts*1_000_000, 0); err != nil {
				b.Fatal(err)
			}
			return r
		}},
	}, "insurance")
	k.Follow(chance{length: 300})
	g := &seatsv1.GenesisState{Params: seats.DefaultParams()}
	g.Params.Allocation = allocation
	for i := range n {
		account := make(sdk.AccAddress, 20)
		binary.BigEndian.PutUint32(account, uint32(i))
		key := sha256.Sum256(account)
		m := seatsv1.Member{Account: account.String(), ConsensusKey: key[:], Bond: 10_000 * tally, Status: seatsv1.STATUS_ACTIVE}
		if i < 100 {
			m.Votes = 100
		}
		g.Members = append(g.Members, m)
		g.Delegations = append(g.Delegations, seatsv1.Delegation{Account: m.Account, Member: m.Account})
	}
	if err := k.InitGenesis(ctx, g); err != nil {
		b.Fatal(err)
	}
	ctx.MultiStore().(storetypes.CommitMultiStore).Commit()
	return ctx, k
}
