package messages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tally-network/tally/core/job"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// An example is a command that can be typed, and no two messages are called the same.
func TestExamplesAreCommands(t *testing.T) {
	for module, all := range map[string][]Message{"": Projects} {
		check(t, "tally drill project", module, all)
	}
	for module, all := range All {
		check(t, "tally tx "+module, module, all)
	}
}

func check(t *testing.T, verb, module string, all []Message) {
	t.Helper()
	seen := map[string]bool{}
	for _, m := range all {
		name, _, _ := strings.Cut(m.Use, " ")
		if seen[name] || m.Short == "" || m.Build == nil || !strings.Contains(m.Example, verb+" "+name) {
			t.Errorf("%s %s: %+v", module, name, m)
		}
		seen[name] = true
	}
}

func build(t *testing.T, module, name string, args ...string) (any, error) {
	t.Helper()
	for _, m := range All[module] {
		if verb, _, _ := strings.Cut(m.Use, " "); verb == name {
			return m.Build(t.Context(), Sender{Account: "tally1me"}, args)
		}
	}
	t.Fatalf("%s has no %s", module, name)
	return nil, nil
}

func TestMessagesAreWhatWasTyped(t *testing.T) {
	for want, got := range map[string]func() (any, error){
		"ask of files": func() (any, error) { return build(t, "work", "ask", "3f", "files", "0", "tally1c") },
		"ask of unit":  func() (any, error) { return build(t, "work", "ask", "3f", "3", "1", "tally1c") },
		"stop":         func() (any, error) { return build(t, "work", "stop", "3f") },
		"vote":         func() (any, error) { return build(t, "policy", "vote", "3", "yes") },
		"sell":         func() (any, error) { return build(t, "auction", "sell", "C:5000@800") },
		"take on":      func() (any, error) { return build(t, "auction", "take-on", "3f", "12") },
	} {
		x, err := got()
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		ok := false
		switch m := x.(type) {
		case *workv1.MsgAsk:
			ok = m.Sender == "tally1me" && m.Custodian == "tally1c" && (m.Files || m.Unit == 3 && m.Attempt == 1)
		case *workv1.MsgStop:
			ok = m.Consumer == "tally1me" && m.Order == "3f"
		case *policyv1.MsgVote:
			ok = m.Voter == "tally1me" && m.Proposal == 3 && m.Option == policyv1.OPTION_YES
		case *auctionv1.MsgSell:
			ok = m.Provider == "tally1me" && len(m.Lots) == 1 && m.Lots[0] == auctionv1.Lot{Tier: "C", Units: 5000, Ask: 800}
		case *auctionv1.MsgTakeOn:
			ok = m.Provider == "tally1me" && m.Order == "3f" && m.Clearing == 12
		}
		if !ok {
			t.Errorf("%s: %+v", want, x)
		}
	}
}

func TestWhatIsTypedWrongly(t *testing.T) {
	huge := filepath.Join(t.TempDir(), "huge.json")
	if err := os.WriteFile(huge, make([]byte, maxMessage+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"files have none":     {"work", "ask", "3f", "files", "1", "tally1c"},
		"unit \"x\"":          {"work", "ask", "3f", "x", "0", "tally1c"},
		"attempt \"x\"":       {"work", "ask", "3f", "0", "x", "tally1c"},
		"proposal \"x\"":      {"policy", "vote", "x", "yes"},
		"vote yes, no":        {"policy", "vote", "3", "maybe"},
		"clearing \"x\"":      {"auction", "take-on", "3f", "x"},
		"GFLOP and price":     {"auction", "sell", "C:0@900"},
		"or rules as block.":  {"policy", "propose", "gone.json"},
		"write MODULE.RULE":   {"policy", "propose", "gas_price=200"},
		"\"block.x=\": write": {"policy", "propose", "block.gas_price=200", "block.x="},
		"65536":               {"auction", "post-clearing", huge},
		"price \"0\"":         {"auction", "seal-ask", "C", "0"},
		"price \"much\"":      {"auction", "seal-bid", "3f", "much"},
		"is no whole number":  {},
	} {
		var err error
		if len(args) == 0 {
			_, err = Projects[0].Build(t.Context(), Sender{}, []string{"name", "much", "why", "who"})
		} else {
			_, err = build(t, args[0], args[1], args[2:]...)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
	if n, err := ProjectNumber("0"); err == nil {
		t.Errorf("project %d", n)
	}
}

// An order that cannot be stopped says so in the words of orders, before anything is sent.
func TestOrdersThatCannotBeStopped(t *testing.T) {
	of := func(consumer, kind string, status marketv1.Status) *marketv1.BookedOrder {
		b := &marketv1.BookedOrder{}
		b.Order.Consumer, b.Order.Problem.Kind, b.Posting.Status = consumer, kind, status
		return b
	}
	for _, c := range []struct {
		of   *marketv1.BookedOrder
		want string // empty: it can
	}{
		{of("me", job.Training, marketv1.STATUS_LEASED), ""},
		{of("you", job.Training, marketv1.STATUS_LEASED), "it is of you, who alone can stop it"},
		{of("me", job.Batch, marketv1.STATUS_LEASED), "which nobody can stop"},
		{of("me", job.Training, marketv1.STATUS_OPEN), "tally tx market cancel-order takes it back"},
		{of("me", job.Training, marketv1.STATUS_SETTLED), "it is settled: there is nothing to stop"},
	} {
		err := stoppable(c.of, "me")
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "lease")) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
