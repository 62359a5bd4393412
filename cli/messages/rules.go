package messages

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/cosmos/gogoproto/grpc"
	"github.com/cosmos/gogoproto/proto"

	"github.com/cosmos/cosmos-sdk/codec"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"

	chainaddress "github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/docs/spec"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
)

// RulesOf asks a module for its rules, by name.
func RulesOf(ctx context.Context, node grpc.ClientConn, module string) (map[string]any, error) {
	in, err := messageOf("tally." + module + ".v1.QueryParamsRequest")
	if err != nil {
		return nil, fmt.Errorf("no module %q has rules: tally policy lists them, as block.gas_price", module)
	}
	out, err := messageOf("tally." + module + ".v1.QueryParamsResponse")
	if err != nil {
		return nil, err
	}
	if err := node.Invoke(ctx, "/tally."+module+".v1.Query/Params", in, out); err != nil {
		return nil, fmt.Errorf("ask for the rules of %s: %w", module, err)
	}
	return rulesIn(out)
}

// RulesSetBy returns the rules that a message sets, none if it sets none.
func RulesSetBy(packed *codectypes.Any) (map[string]any, error) {
	m, err := messageOf(strings.TrimPrefix(packed.TypeUrl, "/"))
	if err != nil {
		return nil, err
	}
	if err := proto.Unmarshal(packed.Value, m); err != nil {
		return nil, err
	}
	return rulesIn(m)
}

// rulesIn returns the field params of a message.
func rulesIn(m proto.Message) (map[string]any, error) {
	text, err := codec.ProtoMarshalJSON(m, nil)
	if err != nil {
		return nil, err
	}
	var fields struct {
		Params map[string]any `json:"params"`
	}
	err = json.Unmarshal(text, &fields)
	return fields.Params, err
}

// messageOf returns an empty message by its full name.
func messageOf(name string) (proto.Message, error) {
	t := proto.MessageType(name)
	if t == nil {
		return nil, fmt.Errorf("this program does not know %s: is it older than the chain?", name)
	}
	return reflect.New(t.Elem()).Interface().(proto.Message), nil
}

// assignment is a rule with the value that somebody proposes.
type assignment struct{ module, rule, value string }

// assignments reads MODULE.RULE=VALUE, several times. typed is whether anything looks like that at all.
func assignments(args []string) (all []assignment, typed bool, err error) {
	for _, arg := range args {
		name, value, found := strings.Cut(arg, "=")
		module, rule, dotted := strings.Cut(name, ".")
		typed = typed || found
		if !found || !dotted || value == "" {
			err = fmt.Errorf("%q: write MODULE.RULE=VALUE, as block.gas_price=200, several times if need be, or one file; tally policy lists the rules", arg)
		}
		all = append(all, assignment{module, rule, value})
	}
	return all, typed, err
}

// set sets a rule among those of its module, and returns what it was.
func (a assignment) set(rules map[string]any) (from string, err error) {
	was, ok := rules[a.rule]
	if !ok {
		return "", fmt.Errorf("%s has no rule %q, only %s", a.module, a.rule, strings.Join(slices.Sorted(maps.Keys(rules)), ", "))
	}
	switch was.(type) {
	case string, float64:
		rules[a.rule] = a.value
	case bool:
		b, err := strconv.ParseBool(a.value)
		if err != nil {
			return "", fmt.Errorf("%s.%s=%s: it is true or false", a.module, a.rule, a.value)
		}
		rules[a.rule] = b
	default:
		return "", fmt.Errorf("%s.%s is no single value: write the proposal into a file, as tally tx policy propose --help shows", a.module, a.rule)
	}
	return spec.Text(was), nil
}

// proposalOf makes a proposal of rules that somebody has typed. rules asks for those of a module as they are now.
func proposalOf(all []assignment, rules func(module string) (map[string]any, error)) (*policyv1.MsgPropose, error) {
	enc, err := app.NewEncoding()
	if err != nil {
		return nil, err
	}
	m := &policyv1.MsgPropose{}
	var titles, changes, modules []string
	now := map[string]map[string]any{}
	for _, a := range all {
		if now[a.module] == nil {
			if now[a.module], err = rules(a.module); err != nil {
				return nil, err
			}
			modules = append(modules, a.module)
		}
		from, err := a.set(now[a.module])
		if err != nil {
			return nil, err
		}
		titles = append(titles, fmt.Sprintf("%s.%s = %s", a.module, a.rule, a.value))
		changes = append(changes, fmt.Sprintf("%s.%s from %s to %s", a.module, a.rule, from, a.value))
	}
	for _, module := range modules {
		update, err := messageOf("tally." + module + ".v1.MsgUpdateParams")
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(map[string]any{"authority": chainaddress.Policy().String(), "params": now[module]})
		if err != nil {
			return nil, err
		}
		if err := enc.Codec.UnmarshalJSON(text, update); err != nil {
			return nil, fmt.Errorf("set %s: %w", strings.Join(titles, ", "), err)
		}
		packed, err := codectypes.NewAnyWithValue(update)
		if err != nil {
			return nil, err
		}
		m.Messages = append(m.Messages, packed)
	}
	m.Title, m.Summary = strings.Join(titles, ", "), strings.Join(changes, "; ")
	if len(m.Title) > maxTitle {
		m.Title = fmt.Sprintf("Change %d rules", len(all))
	}
	return m, nil
}

// maxTitle is how many bytes a proposal's title has, by the chain's rules.
const maxTitle = 140
