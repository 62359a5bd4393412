package app_test

import (
	"bytes"
	"encoding/base64"
	"regexp"
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
	doc, err := d.Verify()
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
		"the same founder": {func(d *app.Draft) error { return d.AddFounder(founder("ann", 1)) }, "a founder of this genesis already"},
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
			_, err = d.Verify()
		}
		if err == nil || !strings.Contains(err.Error(), add.says) {
			t.Errorf("%s: %v, want %q", name, err, add.says)
		}
	}
}

// bent returns a file in which what the pattern finds first is something else: $1 is its first group.
func bent(t *testing.T, plain []byte, pattern, by string) []byte {
	t.Helper()
	find := regexp.MustCompile(pattern)
	at := find.FindSubmatchIndex(plain)
	if at == nil {
		t.Fatalf("the file has no %q", pattern)
	}
	return slices.Concat(find.Expand(slices.Clone(plain[:at[0]]), []byte(by), plain, at), plain[at[1]:])
}

// What begins with a chain and is not told of founders, money and rules is named, however it came into the file.
func TestDraftsHideNothing(t *testing.T) {
	told := func(text []byte) []string {
		d, err := app.ReadDraft(text)
		if err != nil {
			return []string{err.Error()}
		}
		b, err := d.Summary()
		if err != nil {
			return []string{err.Error()}
		}
		return append(b.Others, b.Rules...)
	}
	d := draft(t)
	if err := d.AddFounder(founder("ben", 50)); err != nil {
		t.Fatal(err)
	}
	plain := text(t, d)
	ann, stranger, policy := chaintest.Named("ann").String(), chaintest.Named("cat").String(), address.Policy().String()
	if got := told(plain); len(got) > 0 {
		t.Errorf("nothing was added, and %q differ", got)
	}
	if got := told(bent(t, plain, `(?s)(\{[^{}]*"weight": "100"\s*\}),(\s*\{[^{}]*"weight": "50"\s*\})`, "$2, $1")); len(got) > 0 {
		t.Errorf("founders stand in another order, and %q differ", got)
	}
	for name, x := range map[string]struct{ pattern, by, told string }{
		"a stranger among the founders":    {`"founders": \[`, `"founders": [{"account": "` + stranger + `", "weight": "900"},`, "policy.founders"},
		"a founder who does not vote":      {`(?s)\{[^{}]*"weight": "100"\s*\},`, ``, "policy.founders"},
		"a founder with another weight":    {`"weight": "100"`, `"weight": "99"`, "policy.founders"},
		"rules of a stranger":              {`"authority": "` + policy + `"`, `"authority": "` + stranger + `"`, "auction.authority"}, // the first in the file
		"rules of nobody":                  {`"authority": "` + policy + `",`, ``, "auction.authority"},
		"a founder who is never drawn":     {`"from_epoch": "0"`, `"from_epoch": "9999999999"`, "seats.members"},
		"a founder's other name for it":    {`"from_epoch": "0"`, `"from_epoch": "0", "fromEpoch": "9999999999"`, "seats.members"},
		"a founder without a seat":         {`"status": "STATUS_ACTIVE"`, `"status": "STATUS_JAILED"`, "seats.members"},
		"a bond that does not count":       {`"bond_epoch": "0"`, `"bond_epoch": "9999999999"`, "seats.members"},
		"a stranger's power for a founder": {`"delegations": \[`, `"delegations": [{"account": "` + stranger + `", "member": "` + ann + `"},`, "seats.delegations"},
		"a founder's power for nobody":     {`(?s)\{[^{}]*"member": "` + ann + `"[^{}]*\},`, ``, "seats.delegations"},
		"a stranger's beacon key":          {`"keys": \[`, `"keys": [{"account": "` + stranger + `", "key": "` + base64.StdEncoding.EncodeToString(chaintest.Named("cat").VRFKey()) + `"},`, "beacon.keys"},
		"a founder's peer without work":    {`"unanswered": 0`, `"unanswered": 1`, "provider.peers"},
		"a founder's peer that leads less": {`"lapsed": 0`, `"lapsed": 5`, "provider.peers"},
		"a founder's peer of another role": {`"ROLE_VALIDATOR"`, `"ROLE_VALIDATOR", "ROLE_CHALLENGER"`, "provider.peers"},
		"another currency":                 {`"denom": "utally"`, `"denom": "ugold", "amount": "5"}, {"denom": "utally"`, "bank.balances"},
		"another height":                   {`"initial_height": "1"`, `"initial_height": "9"`, "initial_height"},
		"another hash":                     {`"app_hash": ""`, `"app_hash": "AB"`, "app_hash"},
		"another age of evidence":          {`"max_age_num_blocks": "100000"`, `"max_age_num_blocks": "1"`, "consensus.params"},
		"another rule":                     {`"slash_bps": \d+`, `"slash_bps": 1`, "seats.slash_bps=1"},
		"a rule that is missing":           {`"slash_bps": \d+,`, ``, "seats.slash_bps= (missing, so 0)"},
		"a rule by its other name":         {`"slash_bps": (\d+)`, `"slash_bps": 5000, "slashBps": 1`, "seats.slashBps=1"},
		"rules that stand there twice":     {`(?s)("params": \{[^{}]*)("slash_bps": \d+,)([^{}]*\})`, `$1$2$3, $1$3`, "seats.slash_bps= (missing, so 0)"},
	} {
		if got := told(bent(t, plain, x.pattern, x.by)); !slices.Contains(got, x.told) {
			t.Errorf("%s: %q are told, want %s", name, got, x.told)
		}
	}
}

// A file says all that each machine would otherwise say by itself, and nothing that a terminal would obey.
func TestFilesOfDraftsAreRefused(t *testing.T) {
	plain := text(t, draft(t))
	for name, x := range map[string]struct{ pattern, by, says string }{
		"no time":                  {`"genesis_time": "[^"]*",`, ``, "genesis_time"},
		"time zero":                {`"genesis_time": "[^"]*"`, `"genesis_time": "0001-01-01T00:00:00Z"`, "genesis_time"},
		"another set":              {`"app_hash"`, `"validators": [{"pub_key": {"type": "tendermint/PubKeyEd25519", "value": "` + base64.StdEncoding.EncodeToString(chaintest.Named("cat").PeerKey()) + `"}, "power": "9"}], "app_hash"`, "validators"},
		"a chain that commands":    {`"chain_id": "tally-9"`, `"chain_id": "tally-9\u001b[2J"`, "chain id"},
		"a chain that is a path":   {`"chain_id": "tally-9"`, `"chain_id": "../tally-9"`, "chain id"},
		"a chain without a name":   {`"chain_id": "tally-9"`, `"chain_id": ""`, "chain id"},
		"a chain of a long name":   {`"chain_id": "tally-9"`, `"chain_id": "` + strings.Repeat("x", 51) + `"`, "chain id"},
		"a height out of reach":    {`"initial_height": "1"`, `"initial_height": "9223372036854775805"`, "initial_height"},
		"the state of no module":   {`"auction": \{`, `"auctions": {}, "auction": {`, "auctions"},
		"a state with one lacking": {`"auction": \{`, `"beacon": {`, "auction"},
	} {
		if _, err := app.ReadDraft(bent(t, plain, x.pattern, x.by)); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v, want %q", name, err, x.says)
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
	doc, err := d.Verify()
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
			_, _ = d.Verify() // none may panic
		}
	})
}
