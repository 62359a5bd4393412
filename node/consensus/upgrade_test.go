package consensus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/app"
	blockv1 "github.com/tally-network/tally/gen/tally/block/v1"
	"github.com/tally-network/tally/node/consensus"
)

// The upgrade that is rehearsed: gas costs thrice as much.
const (
	upgradeName   = "dearer"
	upgradeHeight = 12
)

var later = []app.Upgrade{{Name: upgradeName, Migrate: func(ctx context.Context, a *app.App) error {
	p, err := a.Block.Params(ctx)
	if err != nil {
		return err
	}
	p.GasPrice *= 3
	m := &blockv1.MsgUpdateParams{Authority: address.Policy().String(), Params: p}
	_, err = a.MsgServiceRouter().Handler(m)(sdk.UnwrapSDKContext(ctx), m)
	return err
}}}

// plan has the network begin with a proposal that has passed: the first block plans the upgrade.
func (net *network) plan(t *testing.T) {
	t.Helper()
	doc := *net.configs[0].Genesis
	var state map[string]map[string]any
	if err := json.Unmarshal(doc.AppState, &state); err != nil {
		t.Fatal(err)
	}
	p := state["policy"]
	p["next"] = "1"
	p["proposals"] = []any{map[string]any{
		"id": "0", "proposer": alice.String(), "title": "Upgrade", "summary": "Gas costs more.", "status": "STATUS_PASSED",
		"start_ms": "0", "end_ms": "1", "execute_ms": "2", "params": p["params"],
		"messages": []any{map[string]any{
			"@type": "/cosmos.upgrade.v1beta1.MsgSoftwareUpgrade", "authority": address.Policy().String(),
			"plan": map[string]any{"name": upgradeName, "height": fmt.Sprint(upgradeHeight), "info": "tally 2"},
		}},
	}}
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	doc.AppState = text
	for i := range net.configs {
		net.configs[i].Genesis = &doc
	}
}

// awaitHalt waits until a node says that it needs the later version.
func awaitHalt(t *testing.T, n *consensus.Node) {
	t.Helper()
	select {
	case err := <-n.Failed():
		if why := (*app.UpgradeError)(nil); !errors.As(err, &why) || why.Early || why.Plan.Height != upgradeHeight {
			t.Errorf("the node ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatalf("at height %d the node has not ended", n.Height())
	}
}

// upgrade starts a node again, of the earlier or the later version.
func (net *network) upgrade(t *testing.T, i int, upgrades []app.Upgrade) {
	t.Helper()
	net.configs[i].Upgrades = upgrades
	n, err := consensus.Start(t.Context(), net.configs[i])
	if err != nil {
		t.Fatal(err)
	}
	net.nodes[i] = n
}

// All nodes end at the height; with the later version they go on. Who was away at the height fetches the blocks before it by the
// earlier version, and the others by the later one.
func TestUpgradeOnANetwork(t *testing.T) {
	net := newNetwork(t, t.TempDir(), 4)
	net.plan(t)
	net.start(t)
	net.waitHeight(t, 3)
	const away = 3
	if err := net.nodes[away].Stop(); err != nil {
		t.Fatal(err)
	}
	net.nodes[away] = nil
	for _, n := range net.nodes[:away] { // all, before one stops: the last has the block from the others
		awaitHalt(t, n)
	}
	net.stop(t)
	if _, err := consensus.Start(t.Context(), net.configs[0]); err == nil {
		t.Fatal("a node of the earlier version began again after the height")
	}
	for i := range away {
		net.upgrade(t, i, later)
	}
	for i, n := range net.nodes[:away] {
		until(t, fmt.Sprintf("blocks after the upgrade at node %d", i), func() bool { return n.Height() >= upgradeHeight+5 })
	}
	net.upgrade(t, away, nil)
	awaitHalt(t, net.nodes[away])
	if err := net.nodes[away].Stop(); err != nil {
		t.Fatal(err)
	}
	net.upgrade(t, away, later)
	net.waitHeight(t, upgradeHeight+8)
	for h := int64(2); h < upgradeHeight+8; h++ {
		want := net.appHash(t, 0, h)
		for i := range net.nodes {
			if got := net.appHash(t, i, h); got != want {
				t.Errorf("app hash %s after block %d at node %d, and %s at the first", got, h, i, want)
			}
		}
	}
}
