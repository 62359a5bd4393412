package reply

import "context"

// Account is who pays for a request, and who waits for room.
type Account interface {
	// Name tells accounts apart. It may be empty.
	Name() string
	// Enter waits until so many replies may begin. The error is an [api.Fault].
	Enter(ctx context.Context, replies int) (leave func(), err error)
	// Spend counts tokens that a model read and wrote. It fails if there is no budget for them, with an [api.Fault].
	Spend(model string, read, written int) error
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

type open struct{}

func (open) Name() string                               { return "" }
func (open) Enter(context.Context, int) (func(), error) { return func() {}, nil }
func (open) Spend(string, int, int) error               { return nil }
