package reply

import "context"

// Account is who pays for a request, and who waits for room.
type Account interface {
	// Name tells accounts apart. It may be empty.
	Name() string
	// Enter waits until so many replies may begin. The error is an [api.Fault].
	Enter(ctx context.Context, replies int) (leave func(), err error)
	// Owner reports whether the account may decide for all what the machine keeps in memory.
	Owner() bool
	// Reserve takes tokens from the budget before they are read or written, and Return gives back those that were not. Reserve fails if
	// there is no budget for them, with an [api.Fault].
	Reserve(tokens int) error
	Return(tokens int)
	// Count counts tokens that a model read and wrote, for metrics.
	Count(model string, read, written int)
}

type accountKey struct{}

// WithAccount returns a context in which replies are on an account.
func WithAccount(ctx context.Context, a Account) context.Context {
	return context.WithValue(ctx, accountKey{}, a)
}

// accountOf returns the account of a context. Without one there are no bounds.
func accountOf(ctx context.Context) Account {
	if a, ok := ctx.Value(accountKey{}).(Account); ok {
		return a
	}
	return open{}
}

// IsOwner reports whether a context's account may decide for all what the machine keeps in memory.
func IsOwner(ctx context.Context) bool { return accountOf(ctx).Owner() }

type open struct{}

func (open) Name() string                               { return "" }
func (open) Enter(context.Context, int) (func(), error) { return func() {}, nil }
func (open) Owner() bool                                { return true }
func (open) Reserve(int) error                          { return nil }
func (open) Return(int)                                 {}
func (open) Count(string, int, int)                     {}
