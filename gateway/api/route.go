package api

import (
	"context"
	"net/http"
)

// Route is one call of an API.
type Route struct {
	Method, Path string // a path may end in {name...}
	Summary      string
	Free         bool // needs no key
	Owner        bool // needs that of an owner, as it changes what the machine has
	Request      any  // a value of the type that a body is read into; nil: there is no body
	Serve        func(w http.ResponseWriter, r *http.Request) error
}

// API is the routes that share a shape of errors.
type API struct {
	Name   string
	Routes []Route
	// Fail writes a fault. It is called only while nothing has been written.
	Fail func(w http.ResponseWriter, f *Fault)
}

type idKey struct{}

// WithID returns a context of the request with this id.
func WithID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, idKey{}, id)
}

// ID returns the id of a request, or "".
func ID(ctx context.Context) string {
	id, _ := ctx.Value(idKey{}).(string)
	return id
}
