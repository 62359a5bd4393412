// Package network puts models of the network behind a gateway: strangers serve them, and are paid.
//
// Call [New] with a consumer's sessions and the names that are known here.
//
// Invariants: a name that a provider lists proves nothing, so a bare name is served only if this machine knows the root behind it. All others
// are NAME@ROOT. Tokenizer and template are proved by the root.
//
// Source: docs/adr/0069-served-models.md.
package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/local"
	"github.com/tally-network/tally/gateway/reply"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/node/hire"
)

// Models are models that providers list. It implements reply.Models.
type Models struct {
	consumer *hire.Consumer
	names    map[string]canon.Hash
}

// New returns the models that a consumer can have; names are roots that this machine knows.
func New(c *hire.Consumer, names map[string]canon.Hash) *Models { return &Models{c, names} }

// shown is how many digits of a root are in a name: as many as nobody can find another model for.
const shown = 32

// NameOf returns what a model is called whose root this machine does not know.
func NameOf(name string, root canon.Hash) string { return name + "@" + root.String()[:shown] }

// offered is a model, and what its providers say of it.
type offered struct {
	root    canon.Hash
	name    string // as it is asked for
	context uint64
}

// offers returns the models that are listed, by name.
func (m *Models) offers(ctx context.Context) ([]offered, error) {
	all, err := m.consumer.Offers(ctx)
	if err != nil {
		return nil, err
	}
	by := map[canon.Hash]*offered{}
	for i := range all {
		l := &all[i]
		o := by[l.Model]
		if o == nil {
			o = &offered{root: l.Model, name: NameOf(l.Name, l.Model)}
			by[l.Model] = o
		}
		o.context = max(o.context, l.Context)
	}
	var out []offered
	for name, root := range m.names { // sorted below
		if o := by[root]; o != nil {
			x := *o
			x.name = name
			out = append(out, x)
		}
	}
	for _, o := range by {
		out = append(out, *o)
	}
	slices.SortFunc(out, func(a, b offered) int { return cmp.Compare(a.name, b.name) })
	return out, nil
}

// List implements reply.Models.
func (m *Models) List(ctx context.Context) (out []reply.Listing, err error) {
	all, err := m.offers(ctx)
	for _, o := range all {
		out = append(out, reply.Listing{Name: o.name, Digest: o.root.String(), Context: int(o.context), Replies: true})
	}
	return out, err
}

// find returns the model of a name.
func (m *Models) find(ctx context.Context, name string) (*offered, error) {
	all, err := m.offers(ctx)
	if err != nil {
		return nil, err
	}
	name = strings.TrimSuffix(name, ":latest")
	var alike []string
	for i := range all {
		o := &all[i]
		if o.name == name {
			return o, nil
		}
		called, root, ok := strings.Cut(o.name, "@")
		if !ok {
			continue
		}
		if _, wanted, ok := strings.Cut(name, "@"); ok && len(wanted) >= shown && strings.HasPrefix(o.root.String(), wanted) {
			return o, nil
		}
		if called == name {
			alike = append(alike, called+"@"+root)
		}
	}
	if len(alike) > 0 {
		return nil, &api.Fault{
			Status: http.StatusNotFound, Code: "model_not_found", Param: "model",
			Message: fmt.Sprintf("anybody may call a model %.96s: ask for the one that you mean by its root (%s), or pull it, so that its root is known here", name, strings.Join(alike, ", ")),
		}
	}
	return nil, reply.Unknown(name)
}

// Open implements reply.Models.
func (m *Models) Open(ctx context.Context, name string, _ *time.Duration) (*reply.Model, error) {
	o, err := m.find(ctx, name)
	if err != nil {
		return nil, faultOf(err)
	}
	p, err := m.consumer.Model(ctx, o.root)
	if err != nil {
		return nil, faultOf(err)
	}
	x := &reply.Model{
		Listing: reply.Listing{Name: o.name, Digest: o.root.String(), Context: min(int(o.context), p.Config.Context), Replies: true, Details: reply.Details{Family: p.Config.Family}},
		Replier: replier{m.consumer, o.root}, Tokenizer: p.Tokenizer, Prompter: local.NewPrompter(p.Template), Ends: p.Ends, Forms: p.Forms,
	}
	if p.Template != nil {
		x.Details.Template = p.Template.Source()
		x.Tools = strings.Contains(x.Details.Template, "tools")
	}
	return x, nil
}

// Loaded implements reply.Models. Nothing is loaded here.
func (m *Models) Loaded(context.Context) ([]reply.Loaded, error) { return nil, nil }

// Pull implements reply.Models.
func (m *Models) Pull(context.Context, string, func(reply.Progress)) error {
	return api.Unsupported("model", "models of the network are not pulled: providers have them")
}

// replier asks the network.
type replier struct {
	consumer *hire.Consumer
	root     canon.Hash
}

// Reply implements lm.Replier.
func (r replier) Reply(ctx context.Context, q *lm.Request) iter.Seq2[lm.Token, error] {
	asked := hire.WithBills(ctx, func(b hire.Bill) {
		reply.AddBill(ctx, reply.Bill{Provider: b.Provider, Receipt: b.Receipt.String(), Session: b.Session.String(), Tokens: b.Tokens, Price: b.Price, Checking: b.Checking})
	})
	return func(yield func(lm.Token, error) bool) {
		for t, err := range r.consumer.Reply(asked, r.root, q) {
			if err != nil {
				err = faultOf(err)
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

// faultOf is an error of the network as clients understand it.
func faultOf(err error) error {
	var f *api.Fault
	if errors.As(err, &f) || errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(err, hire.ErrTooLong) {
		return api.Invalid("messages", "%v", err)
	}
	return &api.Fault{Status: http.StatusServiceUnavailable, Code: "no_provider", Retry: 5 * time.Second, Message: err.Error()}
}

var _ reply.Models = (*Models)(nil)
