package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	gogoproto "github.com/cosmos/gogoproto/proto"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/reflect/protoreflect"

	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"

	"github.com/tally-network/tally/cli/interrupt"
	"github.com/tally-network/tally/node/home"
)

func run(args ...string) (code int, out, errOut string) {
	var o, e bytes.Buffer
	code = Run(context.Background(), args, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

// verbs are all commands that can be run, by path.
func verbs(t *testing.T) map[string]*cobra.Command {
	t.Helper()
	all := map[string]*cobra.Command{}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Name() == "help" || c.Name() == "completion" {
			return
		}
		all[c.CommandPath()] = c
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk((&env{}).root())
	if len(all) < 60 {
		t.Fatalf("only %d commands", len(all))
	}
	return all
}

func TestEveryVerbHelps(t *testing.T) {
	for path := range verbs(t) {
		args := append(strings.Fields(path)[1:], "--help")
		code, out, errOut := run(args...)
		if code != 0 || errOut != "" {
			t.Errorf("%s: exit %d, %s", path, code, errOut)
		}
		if path == "tally" {
			continue
		}
		if !strings.Contains(out, "Examples:\n  ") || !strings.Contains(out, "tally "+args[0]) {
			t.Errorf("%s: help without an example:\n%s", path, out)
		}
		if strings.Contains(out, "appd") || strings.Contains(out, "cosmos1") || strings.Contains(out, "simd") {
			t.Errorf("%s: help of another program:\n%s", path, out)
		}
	}
}

func TestUnknownFlagsAreUsage(t *testing.T) {
	for path := range verbs(t) {
		args := append(strings.Fields(path)[1:], "--no-such-flag")
		if code, out, errOut := run(args...); code != exitUsage || out != "" || !strings.Contains(errOut, "hint: ") {
			t.Errorf("%s: exit %d, %s%s", path, code, out, errOut)
		}
		code, out, errOut := run(append(args, "--json")...)
		var e struct{ Error, Hint string }
		if err := json.Unmarshal([]byte(out), &e); err != nil || code != exitUsage || e.Error == "" || e.Hint == "" || errOut != "" {
			t.Errorf("%s: exit %d, %s%s", path, code, out, errOut)
		}
	}
}

// The table of questions must keep up with the services.
func TestEveryQueryHasACommand(t *testing.T) {
	known := map[string]bool{}
	for _, q := range questions {
		known[services[q.module]+"."+q.method] = true
	}
	unasked := map[string]bool{
		"tally.market.v1.Query.Quote": true, // tally order validate does
	}
	for module, service := range services {
		if !strings.HasPrefix(service, "tally.") {
			continue
		}
		d, err := gogoproto.HybridResolver.FindDescriptorByName(protoreflect.FullName(service))
		if err != nil {
			t.Fatalf("%s: %v", module, err)
		}
		methods := d.(protoreflect.ServiceDescriptor).Methods()
		for i := range methods.Len() {
			if name := fmt.Sprintf("%s.%s", service, methods.Get(i).Name()); !known[name] && !unasked[name] {
				t.Errorf("no question for %s", name)
			}
		}
	}
}

func TestFill(t *testing.T) {
	d, err := gogoproto.HybridResolver.FindDescriptorByName("tally.provider.v1.QueryPeersRequest")
	if err != nil {
		t.Fatal(err)
	}
	m := d.(protoreflect.MessageDescriptor)
	got, err := fill(m, map[string]string{"role": "Challenger", "limit": "7", "page_key": "AA=="})
	if err != nil || string(got) != `{"pagination":{"key":"AA==","limit":"7"},"role":"ROLE_CHALLENGER"}` {
		t.Fatalf("%s, %v", got, err)
	}
	if _, err := fill(m, map[string]string{"role": "king"}); err == nil {
		t.Fatal("a king was taken")
	}
	d, err = gogoproto.HybridResolver.FindDescriptorByName("tally.work.v1.QueryUnitRequest")
	if err != nil {
		t.Fatal(err)
	}
	for text, ok := range map[string]bool{"3": true, "-3": false, "x": false} {
		got, err := fill(d.(protoreflect.MessageDescriptor), map[string]string{"order": "ab", "unit": text})
		if (err == nil) != ok || ok && string(got) != `{"order":"ab","unit":3}` {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}

func TestFlagsOfQueriesSayWhatTheyAreFor(t *testing.T) {
	for _, q := range questions {
		cmd := q.command()
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("tally query %s %s --%s has no description", q.module, cmd.Name(), f.Name)
			}
		})
	}
}

func TestHints(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("open: %w", &home.BusyError{Dir: "d", PID: 7}), "stop that process"},
		{fmt.Errorf("x: %w", home.ErrNone), "tally provide"},
		{fmt.Errorf("pay: %w", sdkerrors.ErrInsufficientFunds), "send the account money"},
		{errors.New("something else"), ""},
	} {
		if got := hint(c.err, false); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%v: %q", c.err, got)
		}
	}
	if got := plain(errors.New("rpc error: code = NotFound desc = no order: key not found")); got != "no order" {
		t.Errorf("%q", got)
	}
}

func TestPlainErrorsNameNoSource(t *testing.T) {
	err := errors.New("spendable balance is smaller: insufficient funds [cosmos/cosmos-sdk@v0.54/x/bank/keeper/send.go:87]: try less")
	if got := plain(err); got != "spendable balance is smaller: insufficient funds: try less" {
		t.Errorf("%q", got)
	}
}

// Strangers' words command no terminal, whether they come in an error or in what a node tells of its start.
func TestWordsOfStrangersAreText(t *testing.T) {
	const words = "no\x1b[2Jblo\u009bck\x00\u202e yet\n\tat all"
	const want = "no[2Jblock yet\n\tat all"
	if got := plain(errors.New(words)); got != want {
		t.Errorf("%q", got)
	}
	var out bytes.Buffer
	m := &member{e: &env{out: &out}, sync: syncing{from: []string{"http://203.0.113.7:26657"}}}
	if m.begin(&home.Home{}).Tell("%s", words); out.String() != want+"\n" {
		t.Errorf("%q", out.String())
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errOut bytes.Buffer
	code := Run(ctx, []string{"devnet", "--dir", t.TempDir(), "--json"}, strings.NewReader(""), &out, &errOut)
	if code != exitInterrupted || !strings.Contains(out.String(), `"interrupted"`) {
		t.Fatalf("exit %d, %s%s", code, out.String(), errOut.String())
	}
}

// Whoever presses Ctrl-C waits for nothing that cannot be interrupted.
func TestInterruptibleReturnsAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	begun, end := make(chan struct{}), make(chan struct{})
	defer close(end)
	go func() { <-begun; cancel() }()
	if v, err := interrupt.Run(ctx, func() (int, error) { close(begun); <-end; return 1, nil }); v != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d, %v", v, err)
	}
	if v, err := interrupt.Run(t.Context(), func() (int, error) { return 1, nil }); v != 1 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
}
