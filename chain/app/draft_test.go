package app_test

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	"github.com/tally-network/tally/internal/testkit/chaintest"
)

func founder(name string, votes int64) app.Founder {
	a := chaintest.Named(name)
	return app.Founder{
		Validator: app.Validator{Account: a.String(), ConsensusKey: a.PeerKey(), Votes: votes, Bond: 1_000 * tally},
		BeaconKey: a.VRFKey(), Balance: 7 * tally,
		Peer: providerv1.Peer{Account: a.String(), Roles: []providerv1.Role{providerv1.ROLE_VALIDATOR}, PeerKey: a.PeerKey(), VrfKey: a.VRFKey(), Stake: 1_000 * tally},
	}
}

// draft describes a chain with one founder.
func draft(t *testing.T) *app.Draft {
	t.Helper()
	d, err := app.Genesis{ChainID: "tally-9", Time: time.Unix(1_800_000_000, 0), Reserve: 500 * tally}.Draft()
	if err == nil {
		err = d.AddFounder(founder("ann", 100))
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func text(t *testing.T, d *app.Draft) []byte {
	t.Helper()
	doc, err := d.Doc()
	if err != nil {
		t.Fatal(err)
	}
	out, err := app.Text(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What is added to a file is there as if it had been described at once, and the same steps give the same bytes.
func TestDraftsAddUp(t *testing.T) {
	steps := func() []byte {
		d, err := app.ReadDraft(text(t, draft(t)))
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{
			d.AddFounder(founder("ben", 50)),
			d.AddBalances(app.Account{Address: chaintest.Named("cat").String(), Balance: 3 * tally}, app.Account{Address: chaintest.Named("ann").String(), Balance: tally}),
			d.SetRule("block", "gas_price", "200"),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return text(t, d)
	}
	once := steps()
	if !bytes.Equal(once, steps()) {
		t.Fatal("the same steps gave another file")
	}
	d, err := app.ReadDraft(once)
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Summary()
	if err != nil {
		t.Fatal(err)
	}
	if b.Supply != (500+2*(1_000+1_000+7)+3+1)*tally || b.Reserve != 500*tally || b.Locked != 4_000*tally || b.Accounts != 3 {
		t.Errorf("%+v", b)
	}
	if len(b.Founders) != 2 || b.Founders[1].Votes != 50 || !bytes.Equal(b.Founders[1].BeaconKey, chaintest.Named("ben").VRFKey()) || b.Founders[1].Stake != 1_000*tally {
		t.Errorf("%+v", b.Founders)
	}
	if len(b.Rules) != 1 || b.Rules[0] != "block.gas_price=200" {
		t.Errorf("rules %q", b.Rules)
	}
}

// No file comes of what no chain could begin with.
func TestDraftsAreRefused(t *testing.T) {
	for name, add := range map[string]struct {
		change func(*app.Draft) error
		says   string
	}{
		"nobody":           {func(d *app.Draft) error { nobody, err := app.Genesis{ChainID: "x"}.Draft(); *d = *nobody; return err }, "nobody has votes"},
		"the same founder": {func(d *app.Draft) error { return d.AddFounder(founder("ann", 1)) }, "two keys"},
		"a key of another": {func(d *app.Draft) error {
			f := founder("ben", 1)
			f.ConsensusKey = founder("ann", 1).ConsensusKey
			return d.AddFounder(f)
		}, "unique"},
		"no votes": {func(d *app.Draft) error { return d.AddFounder(founder("ben", -1)) }, "votes"},
		"more than may exist": {func(d *app.Draft) error {
			return d.AddBalances(app.Account{Address: chaintest.Named("cat").String(), Balance: coin.MaxSupply})
		}, "exceed"},
		"no address":     {func(d *app.Draft) error { return d.AddBalances(app.Account{Address: "cat", Balance: 1}) }, "cat"},
		"no such rule":   {func(d *app.Draft) error { return d.SetRule("block", "colour", "1") }, "only gas_price"},
		"no such module": {func(d *app.Draft) error { return d.SetRule("blocks", "gas_price", "1") }, "no module with rules"},
		"no number":      {func(d *app.Draft) error { return d.SetRule("block", "gas_price", `1","x":"2`) }, "block"},
		"out of bounds":  {func(d *app.Draft) error { return d.SetRule("seats", "seats", "0") }, "want between"},
		"no JSON":        {func(d *app.Draft) error { return d.SetRule("seats", "voting_bps", "}") }, "seats"},
	} {
		d := draft(t)
		err := add.change(d)
		if err == nil {
			_, err = d.Doc()
		}
		if err == nil || !strings.Contains(err.Error(), add.says) {
			t.Errorf("%s: %v, want %q", name, err, add.says)
		}
	}
}

// What begins with a chain and is not told of founders, money and rules is named, however it came into the file.
func TestDraftsHideNothing(t *testing.T) {
	others := func(text []byte) []string {
		t.Helper()
		d, err := app.ReadDraft(text)
		if err != nil {
			t.Fatal(err)
		}
		b, err := d.Summary()
		if err != nil {
			t.Fatal(err)
		}
		return b.Others
	}
	plain := text(t, draft(t))
	if got := others(plain); len(got) > 0 {
		t.Errorf("nothing was added, and %q differ", got)
	}
	stranger := chaintest.Named("cat").String()
	for part, x := range map[string]struct{ old, new string }{
		"policy.founders":   {`"founders": [`, `"founders": [{"account": "` + stranger + `", "weight": "900"},`},
		"auction.authority": {`"authority": "` + address.Policy().String() + `"`, `"authority": "` + stranger + `"`}, // the first in the file
		"seats.delegations": {`"delegations": [`, `"delegations": [{"account": "` + stranger + `", "member": "` + chaintest.Named("ann").String() + `"},`},
		"beacon.keys":       {`"keys": [`, `"keys": [{"account": "` + stranger + `", "key": "` + base64.StdEncoding.EncodeToString(chaintest.Named("cat").VRFKey()) + `"},`},
		"bank.balances":     {`"denom": "utally"`, `"denom": "ugold", "amount": "5"}, {"denom": "utally"`},
		"initial_height":    {`"initial_height": "1"`, `"initial_height": "9"`},
		"consensus.params":  {`"max_age_num_blocks": "100000"`, `"max_age_num_blocks": "1"`},
	} {
		bent := strings.Replace(string(plain), x.old, x.new, 1)
		if bent == string(plain) {
			t.Errorf("%s: the file has no %q", part, x.old)
			continue
		}
		if got := others([]byte(bent)); !slices.Contains(got, part) {
			t.Errorf("%s was bent, and %q are named", part, got)
		}
	}
}

func FuzzReadDraft(f *testing.F) {
	d, err := app.Genesis{ChainID: "tally-9", Time: time.Unix(1_800_000_000, 0)}.Draft()
	if err == nil {
		err = d.AddFounder(founder("ann", 100))
	}
	if err != nil {
		f.Fatal(err)
	}
	doc, err := d.Doc()
	if err != nil {
		f.Fatal(err)
	}
	whole, err := app.Text(doc)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"chain_id":"x","app_state":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if d, err := app.ReadDraft(text); err == nil {
			_, _ = d.Summary()
			_ = d.SetRule("block", "gas_price", "7")
			_, _ = d.Doc() // none may panic
		}
	})
}
