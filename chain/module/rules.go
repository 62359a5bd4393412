package module

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	"cosmossdk.io/collections/codec"
	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/chain/address"
)

// The errors of Rules. Codes are part of the protocol: never reuse one.
var (
	ErrAuthority = errorsmod.Register("rules", 2, "another account must sign")
	ErrRules     = errorsmod.Register("rules", 3, "rules that may not be set")
)

// Rules are a module's parameters, and the account that may replace them: the
// authority that genesis names, if any. A network may start with rules to which
// nobody could change, such as those of tests; so what may be set is checked apart.
type Rules[P any] struct {
	params    collections.Item[P]
	authority collections.Item[string]
	check     func(old, p P) error
}

// RulesOf declares the rules of a module, kept under two prefixes of its store.
// check returns an error that shows why rules may not take the place of the old ones.
func RulesOf[P any](sb *collections.SchemaBuilder, params, authority int, value codec.ValueCodec[P], check func(old, p P) error) Rules[P] {
	return Rules[P]{
		params:    collections.NewItem(sb, collections.NewPrefix(params), "params", value),
		authority: collections.NewItem(sb, collections.NewPrefix(authority), "authority", collections.StringValue),
		check:     check,
	}
}

// Get returns the rules that hold now.
func (r Rules[P]) Get(ctx context.Context) (P, error) { return r.params.Get(ctx) }

// Authority returns the account that may replace the rules, "" if nobody may.
func (r Rules[P]) Authority(ctx context.Context) (string, error) {
	a, err := r.authority.Get(ctx)
	if errors.Is(err, collections.ErrNotFound) {
		return "", nil
	}
	return a, err
}

// Init stores what a genesis says.
func (r Rules[P]) Init(ctx context.Context, p P, authority string) error {
	return errors.Join(r.params.Set(ctx, p), r.authority.Set(ctx, authority))
}

// Authorize returns an error unless an account that has signed is the authority.
func (r Rules[P]) Authorize(ctx context.Context, by string) error {
	authority, err := r.Authority(ctx)
	if err != nil {
		return err
	}
	if authority == "" || by != authority {
		return errorsmod.Wrapf(ErrAuthority, "the rules are changed by %q, as the genesis says, not by %s", authority, by)
	}
	return nil
}

// Replace sets the rules in the name of an account that has signed.
func (r Rules[P]) Replace(ctx context.Context, by string, p P) error {
	if err := r.Authorize(ctx, by); err != nil {
		return err
	}
	old, err := r.Get(ctx)
	if err != nil {
		return err
	}
	if err := r.check(old, p); err != nil {
		return errorsmod.Wrap(ErrRules, err.Error())
	}
	return r.params.Set(ctx, p)
}

// Bound is what a vote may set a rule to. What a genesis has set outside stays until it is changed.
type Bound struct {
	Name        string
	Old, New    uint64
	Least, Most uint64
}

// Signed is a Bound of a rule that has a sign, and may not be below 0.
func Signed(name string, old, p, least, most int64) Bound {
	return Bound{name, uint64(old), uint64(p), uint64(least), uint64(most)}
}

// Within returns an error that names the first rule that would leave its bounds.
func Within(bounds ...Bound) error {
	for _, b := range bounds {
		if b.New != b.Old && (b.New < b.Least || b.New > b.Most) {
			return fmt.Errorf("%s = %d: a vote may set it to %d at least and %d at most", b.Name, b.New, b.Least, b.Most)
		}
	}
	return nil
}

// CheckAuthority checks the authority that a genesis names.
func CheckAuthority(account string) error {
	if account == "" {
		return nil
	}
	if _, err := address.Parse(account); err != nil {
		return fmt.Errorf("authority: %w", err)
	}
	return nil
}
