package app_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/vrf"
	"github.com/tally-network/tally/core/canon"
	beaconv1 "github.com/tally-network/tally/gen/tally/beacon/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// value returns the last value of the beacon.
func value(t *testing.T, c *chaintest.Chain) canon.Hash {
	t.Helper()
	v, _, err := c.Beacon.Value(c.Ctx())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// judge returns whether validators take a block of these transactions, a second after the last.
func judge(t testing.TB, c *chaintest.Chain, txs ...[]byte) bool {
	t.Helper()
	r, err := c.ProcessProposal(&abci.RequestProcessProposal{
		Height: c.LastBlockHeight() + 1, Time: c.Now().Add(time.Second), ProposerAddress: c.Proposer(), Txs: txs,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r.Status == abci.ResponseProcessProposal_ACCEPT
}

// next is the context in which the next block's proposer works.
func next(c *chaintest.Chain) sdk.Context {
	return c.NewNextBlockContext(cmtproto.Header{
		ChainID: chaintest.ChainID, Height: c.LastBlockHeight() + 1, Time: c.Now().Add(time.Second), ProposerAddress: c.Proposer(),
	})
}

// begun returns transactions as an honest proposer puts them into the next block.
func begun(t testing.TB, c *chaintest.Chain, txs ...[]byte) [][]byte {
	t.Helper()
	out, err := c.Begun(next(c), txs)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// proofBy is a proof of an account under its VRF key, over what the next block's is over.
func proofBy(t *testing.T, c *chaintest.Chain, by, key chaintest.Account) []byte {
	t.Helper()
	input, err := c.Beacon.Input(next(c))
	if err != nil {
		t.Fatal(err)
	}
	_, pi, err := vrf.Prove(key.VRF, input)
	if err != nil {
		t.Fatal(err)
	}
	return proofTx(t, c, &beaconv1.MsgProve{Account: by.String(), Proof: pi})
}

func proofTx(t *testing.T, c *chaintest.Chain, m *beaconv1.MsgProve) []byte {
	t.Helper()
	b := c.Tx.NewTxBuilder()
	if err := b.SetMsgs(m); err != nil {
		t.Fatal(err)
	}
	b.SetGasLimit(300_000)
	raw, err := c.Tx.TxEncoder()(b.GetTx())
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A block with transactions has one proof, its proposer's own, over this height, first. An idle
// one has none.
func TestBlocksAreTakenWithTheirProofAlone(t *testing.T) {
	c := chaintest.New(t, network()...)
	alice, bob, producer := chaintest.Named("alice"), chaintest.Named("bob"), chaintest.Named("producer")
	c.Queue(alice, send(alice, bob, 1))
	old := begun(t, c, c.TakeQueue()...)[0]
	c.Deliver(alice, send(alice, bob, 1))
	c.Queue(alice, send(alice, bob, 1))
	tx := c.TakeQueue()[0]
	proof := begun(t, c, tx)[0]
	if !bytes.Equal(proof, proofBy(t, c, producer, producer)) {
		t.Fatal("the proof of an honest proposer is not what this test makes")
	}
	for name, x := range map[string]struct {
		txs [][]byte
		ok  bool
	}{
		"idle":                     {nil, true},
		"idle with a proof":        {[][]byte{proof}, false},
		"transactions":             {[][]byte{proof, tx}, true},
		"no proof":                 {[][]byte{tx}, false},
		"proof not first":          {[][]byte{tx, proof}, false},
		"two proofs":               {[][]byte{proof, proof, tx}, false},
		"an old one":               {[][]byte{old, tx}, false},
		"by another key":           {[][]byte{proofBy(t, c, producer, alice), tx}, false},
		"another's, copied":        {[][]byte{proofBy(t, c, alice, alice), tx}, false},
		"cut":                      {[][]byte{proofTx(t, c, &beaconv1.MsgProve{Account: producer.String(), Proof: make([]byte, 79)}), tx}, false},
		"bent":                     {[][]byte{proofTx(t, c, &beaconv1.MsgProve{Account: producer.String(), Proof: make([]byte, 80)}), tx}, false},
		"something beside a proof": {[][]byte{append(bytes.Clone(proof), field(3, []byte("memo"))...), tx}, false},
	} {
		if judge(t, c, x.txs...) != x.ok {
			t.Errorf("%s: taken: %v", name, !x.ok)
		}
	}
}

// Whatever bytes a proposer puts before its transactions, a block is taken with the one proof alone.
func FuzzProof(f *testing.F) {
	c := chaintest.New(f, network()...)
	alice := chaintest.Named("alice")
	c.Queue(alice, send(alice, alice, 1))
	txs := begun(f, c, c.TakeQueue()...)
	proof, tx := txs[0], txs[1]
	f.Add(proof)
	f.Add(proof[:len(proof)-1])
	f.Add(append(bytes.Clone(proof), 0))
	f.Add(tx)
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if judge(t, c, raw, tx) != bytes.Equal(raw, proof) {
			t.Fatalf("taken: %v", !bytes.Equal(raw, proof))
		}
	})
}

// A proof cannot be sent: neither as it is, nor signed, nor together with other messages.
func TestProofsCannotBeSent(t *testing.T) {
	c := chaintest.New(t, network()...)
	alice, producer := chaintest.Named("alice"), chaintest.Named("producer")
	c.Queue(alice, send(alice, alice, 1))
	proof := begun(t, c, c.TakeQueue()...)[0]
	tx, err := c.Tx.TxDecoder()(proof)
	if err != nil {
		t.Fatal(err)
	}
	m := tx.GetMsgs()[0].(*beaconv1.MsgProve)
	signed := *m
	signed.Account = alice.String()
	for name, raw := range map[string][]byte{
		"as it is":       proof,
		"signed":         later(t, c, alice, 1_000_000, &signed),
		"among others":   later(t, c, alice, 1_000_000, send(alice, alice, 1), &signed),
		"the proposer's": later(t, c, alice, 1_000_000, m),
	} {
		if r := check(t, c, raw); r.Code == 0 || !strings.Contains(r.Log, "cannot be sent") {
			t.Errorf("%s: entered the mempool: %s", name, r.Log)
		}
	}
	// Nor does a second one count in a block that was decided on all the same.
	before := value(t, c)
	c.Queue(alice, send(alice, producer, 1))
	b := c.NextBlockOf(proof)
	if r := b.TxResults[len(b.TxResults)-1]; r.Code == 0 || value(t, c) == before {
		t.Fatalf("a second proof: %s", r.Log)
	}
}

// Every block with transactions has another value, and an idle one leaves it alone.
func TestValuesFollowOneAnother(t *testing.T) {
	c := chaintest.New(t, network()...)
	alice, bob := chaintest.Named("alice"), chaintest.Named("bob")
	seen := map[canon.Hash]bool{value(t, c): true}
	for range 3 {
		b := c.Deliver(alice, send(alice, bob, 1))
		e := chaintest.Events[*beaconv1.EventValue](t, chaintest.Block{ResponseFinalizeBlock: &abci.ResponseFinalizeBlock{TxResults: []*abci.ExecTxResult{b.Proof}}})
		v := value(t, c)
		if seen[v] || len(e) != 1 || !bytes.Equal(e[0].Value, v[:]) || e[0].Proposer != chaintest.Named("producer").String() {
			t.Fatalf("value %v, events %v", v.Short(), e)
		}
		seen[v] = true
		if c.NextBlock(time.Second); !seen[value(t, c)] || c.NextBlock(time.Minute).Proof != nil {
			t.Fatal("an idle block gave a value")
		}
	}
}

// While a receipt waits for its auditors, a block without transactions has a proof, and is refused
// without: so the draw follows from a value that comes after the receipt, and not much later.
func TestADrawDemandsAValue(t *testing.T) {
	c := chaintest.New(t, worktest.Network()...)
	p := worktest.Begin(t, c, worktest.Order())
	p.Assign(0, "p0")
	p.Deliver(chaintest.Named("p0"), p.SubmitMsg(p.Receipt(0)))
	if judge(t, c) {
		t.Fatal("a block without the value that a draw waits for was taken")
	}
	r, err := c.PrepareProposal(&abci.RequestPrepareProposal{
		Height: c.LastBlockHeight() + 1, Time: c.Now().Add(time.Second), MaxTxBytes: 4 << 20, ProposerAddress: c.Proposer(),
	})
	if err != nil || len(r.Txs) != 1 || !judge(t, c, r.Txs...) {
		t.Fatalf("an honest proposal: %v, %v", r, err)
	}
	before := value(t, c)
	if len(p.Unit(0).Audits) != 0 {
		t.Fatal("auditors were drawn in the receipt's block")
	}
	c.NextBlock(time.Second)
	if len(p.Unit(0).Audits) == 0 || value(t, c) == before {
		t.Fatal("no auditors were drawn from the value of the next block")
	}
}

// A lease is drawn by the value of the block after its match, which it demands: whoever proposes the
// block of the match knows that block's value, and chooses the parties.
func TestALeaseIsDrawnAfterItsMatch(t *testing.T) {
	c := chaintest.New(t, worktest.Network()...)
	worktest.Offer(c, "v0")
	o := worktest.Order()
	c.Deliver(worktest.Consumer, worktest.Post(o))
	p := worktest.Join(t, c, o)
	if l := p.State(); len(l.Leads) != 1 || len(l.Files.Custodians) > 0 || len(l.Auditors) == 0 {
		t.Fatalf("drawn in the block of the match: %+v, %+v, of %d validators", l.Leads, l.Files.Custodians, len(l.Auditors))
	}
	if judge(t, c) {
		t.Fatal("a block without the value that a draw waits for was taken")
	}
	c.NextBlock(time.Second)
	if l := p.State(); len(l.Leads) != 1+len(l.Auditors) || len(l.Files.Custodians) == 0 {
		t.Fatalf("not drawn in the next block: %+v, %+v", l.Leads, l.Files.Custodians)
	}
}

// An order that nobody meets leaves the chain idle: nothing is drawn for it.
func TestAnOrderThatWaitsLeavesTheChainIdle(t *testing.T) {
	c := chaintest.New(t, worktest.Network()...)
	worktest.Offer(c, "v0")
	o := worktest.Order()
	o.Conditions.MaxPrice, o.Conditions.Expires = 1, time.Hour.Milliseconds()
	c.Deliver(worktest.Consumer, worktest.Post(o))
	for range 120 { // it is tried at once, and after 10, 20 and 40 seconds
		if c.NextBlock(time.Second).Proof != nil {
			t.Fatal("a block has a value for an order that nobody meets")
		}
	}
}

// A node that has not the key of its validator proposes no transactions.
func TestWhoCannotProveProposesNothing(t *testing.T) {
	c := chaintest.New(t, network()...)
	alice := chaintest.Named("alice")
	c.Queue(alice, send(alice, alice, 1))
	txs := c.TakeQueue()
	c.ProveWith(alice.VRF)
	r, err := c.PrepareProposal(&abci.RequestPrepareProposal{
		Height: c.LastBlockHeight() + 1, Time: c.Now().Add(time.Second), MaxTxBytes: 4 << 20, ProposerAddress: c.Proposer(), Txs: txs,
	})
	if err != nil || len(r.Txs) != 0 || !judge(t, c) {
		t.Fatalf("%v, %v", r, err)
	}
	c.ProveWith(alice.VRF, chaintest.Named("producer").VRF)
	r, err = c.PrepareProposal(&abci.RequestPrepareProposal{
		Height: c.LastBlockHeight() + 1, Time: c.Now().Add(time.Second), MaxTxBytes: 4 << 20, ProposerAddress: c.Proposer(), Txs: txs,
	})
	if err != nil || len(r.Txs) != 2 || !judge(t, c, r.Txs...) {
		t.Fatalf("%v, %v", r, err)
	}
}

// BenchmarkProof is what a block costs because of the beacon: one proof made and put first by its
// proposer, one checked by everybody.
func BenchmarkProof(b *testing.B) {
	key := chaintest.Named("producer")
	input := make([]byte, 40)
	_, pi, err := vrf.Prove(key.VRF, input)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("prove", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := vrf.Prove(key.VRF, input); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			if _, err := vrf.Verify(key.VRFKey(), input, pi); err != nil {
				b.Fatal(err)
			}
		}
	})
}
