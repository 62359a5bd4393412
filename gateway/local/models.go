package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/gateway/reply"
	"github.com/tally-network/tally/model/encoder"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/library"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/model/replies"
)

// Options say what models there are, and how they are served.
type Options struct {
	Exec    engine.Executor
	Replies replies.Options
	Keep    time.Duration // how long a model stays open that nobody asks; 0: five minutes
	MaxOpen int           // models that are open at once; 0: three
	Find    Finder        // further models; nil: none

	Draft string // path of a language model that drafts for all that have its tokens; "": none does

	Adapters       []Adapter // models that differ from others by an adapter
	AdapterFolders []AdapterFolder
	MaxAdapters    int // of these, how many are open at once; 0: 64
}

// Finder has further models, by name.
type Finder interface {
	List() ([]reply.Listing, error)
	Path(name string) (path string, err error) // reply.Unknown if there is none
	Pull(ctx context.Context, name string, tell func(reply.Progress)) error
}

// grace is the least time for which a model stays open: the reply for which it was opened has to begin.
const grace = time.Second

// Models are models of this machine. It implements reply.Models.
type Models struct {
	options Options
	files   []file // those that were named
	read    func(path string) (*Files, error)
	draft   func() (*files.Files, error)
	found   found

	mu           sync.Mutex
	open         map[place]*opened
	closed       bool
	closedDrafts tally
}

// file is a model that was named by its path.
type file struct {
	listing reply.Listing
	path    string
	adapter *Adapter               // nil of others
	digest  func() (string, error) // waits until it is known
}

// place is where a model lies.
type place struct {
	path    string
	adapter *Adapter
}

// opened is a model that is open, or is being opened.
type opened struct {
	at     place
	ready  chan struct{} // closed when what follows is known
	model  *reply.Model
	files  *Files
	base   *opened         // of an adapted model, which uses it
	server *replies.Server // that of the base
	memory int64
	err    error

	of       stamp // of an adapter's files, as they were read
	replaced bool  // files of an adapter have changed: who asks next gets another

	users int // who waits for it, and replies
	keep  time.Duration
	until time.Time // while nobody uses it
	timer *time.Timer
}

// New returns the models at paths, which are called as their files are, and those of options.
func New(o Options, paths ...string) (*Models, error) {
	o.Keep, o.MaxOpen, o.MaxAdapters = cmp.Or(o.Keep, 5*time.Minute), cmp.Or(o.MaxOpen, 3), cmp.Or(o.MaxAdapters, 64)
	m := &Models{options: o, read: Open, draft: opensDraft(o.Draft), open: map[place]*opened{}, found: found{known: map[string]*foundAdapter{}}}
	for _, path := range paths {
		l, err := listing(path)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(m.files, func(f file) bool { return f.listing.Name == l.Name }) {
			return nil, fmt.Errorf("two models are called %s: rename one", l.Name)
		}
		f := file{listing: l, path: path, digest: digestOf(path)}
		go f.digest() // which takes a second for each gigabyte
		m.files = append(m.files, f)
	}
	if err := m.addAdapters(); err != nil {
		return nil, err
	}
	return m, nil
}

// digestOf returns what hashes the files at a path, once.
func digestOf(path string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		return safely(func() (string, error) { return library.DigestOf(context.Background(), path) })
	})
}

// List implements reply.Models.
func (m *Models) List(context.Context) ([]reply.Listing, error) {
	var out []reply.Listing
	for _, f := range m.all() {
		l, err := f.listing, error(nil)
		m.mu.Lock()
		if x := m.open[place{f.path, f.adapter}]; x != nil && x.model != nil {
			l.Digest = x.model.Digest // of what replies, whatever the files are now
		}
		m.mu.Unlock()
		if l.Digest == "" {
			l.Digest, err = f.digest()
		}
		switch {
		case err == nil:
			out = append(out, l)
		case f.adapter == nil: // an adapter that is away hides nothing else
			return nil, err
		}
	}
	if m.options.Find != nil {
		more, err := m.options.Find.List()
		if err != nil && len(out)+len(more) == 0 { // what is damaged hides nothing else
			return nil, err
		}
		for _, l := range more {
			if !slices.ContainsFunc(out, func(x reply.Listing) bool { return x.Name == l.Name }) {
				out = append(out, l)
			}
		}
	}
	return out, nil
}

// place returns where a model lies.
func (m *Models) place(name string) (place, error) {
	own := strings.TrimSuffix(name, ":latest")
	for _, f := range m.all() {
		if f.listing.Name == own {
			return place{f.path, f.adapter}, nil
		}
	}
	if err := m.broken(own); err != nil {
		return place{}, err
	}
	if m.options.Find == nil {
		return place{}, reply.Unknown(name)
	}
	path, err := m.options.Find.Path(name)
	return place{path: path}, err
}

// nameOf is what a model is called that was named, or is in a folder of adapters; "" of others.
func (m *Models) nameOf(at place) string {
	for _, f := range m.all() {
		if at == (place{f.path, f.adapter}) {
			return f.listing.Name
		}
	}
	return ""
}

// Open implements reply.Models.
func (m *Models) Open(ctx context.Context, name string, keep *time.Duration) (*reply.Model, error) {
	at, err := m.place(name)
	if err != nil {
		return nil, err
	}
	x, err := m.use(at)
	if err != nil {
		return nil, err
	}
	defer m.leave(x)
	select {
	case <-x.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if x.err != nil {
		return nil, x.err
	}
	if keep != nil {
		m.mu.Lock()
		x.keep = *keep
		m.mu.Unlock()
	}
	return x.model, nil
}

// use counts a user of the model at a place, which is opened if it is not.
func (m *Models) use(at place) (*opened, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, replies.ErrClosed
	}
	if x := m.open[at]; x != nil && !m.stale(x) {
		x.users++
		return x, nil
	} else if x != nil {
		m.replace(x)
	}
	if err := m.makeRoom(at.adapter != nil); err != nil {
		return nil, err
	}
	x := &opened{at: at, ready: make(chan struct{}), users: 2, keep: m.options.Keep}
	m.open[at] = x
	go func() { // loading is a use of its own
		defer m.leave(x)
		m.load(x)
	}()
	return x, nil
}

// leave ends a use. What nobody uses is closed after a while.
func (m *Models) leave(x *opened) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left(x)
}

// left is leave under the lock.
func (m *Models) left(x *opened) {
	x.users--
	if x.replaced {
		m.left(x.base)
	}
	if x.users > 0 || m.open[x.at] != x {
		return
	}
	if x.timer != nil {
		x.timer.Stop()
	}
	if x.keep < 0 {
		x.until = time.Time{}
		return
	}
	keep := max(x.keep, grace)
	x.until = time.Now().Add(keep)
	x.timer = time.AfterFunc(keep, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if x.users == 0 && m.open[x.at] == x && !time.Now().Before(x.until) {
			m.drop(x)
		}
	})
}

// load opens a model. A failure is told to those that wait, and forgotten.
func (m *Models) load(x *opened) {
	defer close(x.ready)
	f, err := m.filesOf(x)
	known, listErr := m.List(context.Background())
	var o replies.Options
	if err == nil {
		o, err = m.repliesOf(x, f)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		err = listErr
	}
	if err == nil && m.closed {
		err = replies.ErrClosed
	}
	if x.err = err; err != nil {
		delete(m.open, x.at)
		if x.base != nil {
			m.left(x.base)
		}
		return
	}
	l := Listing(files.NameOf(x.at.path), f.Description, time.Time{})
	name := m.nameOf(x.at)
	for _, k := range known {
		if k.Name == name {
			l = k
		} else if name == "" && m.options.Find != nil {
			if path, err := m.options.Find.Path(k.Name); err == nil && path == x.at.path {
				l = k
			}
		}
	}
	if f.Language != nil {
		tellTemplate(&l, f.Language.Template)
	}
	m.serve(x, f, l, o)
}

// serve makes the model of files that answers.
func (m *Models) serve(x *opened, f *Files, l reply.Listing, o replies.Options) {
	x.files, x.model = f, &reply.Model{Listing: l, Tokenizer: f.Tokenizer}
	if f.Encoder != nil {
		x.memory = f.Description.Encoder.Memory
		x.model.Embedder = embedder{m, x, f.Encoder.NewEmbedder(m.options.Exec)}
		return
	}
	var as lm.Replier
	if x.base != nil {
		x.memory, x.server = f.Description.Language.Adapter.Bytes, x.base.server
		as, _ = x.server.As(f.Language.Weights) // filesOf has made it of that base
	} else {
		x.memory, x.server = f.Description.Language.Memory, replies.Start(f.Language.Weights, m.options.Exec, o)
		as = x.server
	}
	x.model.Context = x.server.Context()
	x.model.Replier, x.model.Ends, x.model.Forms = replier{m, x, as}, f.Language.Ends, f.Language.Forms
	if f.Language.Template != nil {
		x.model.Prompter = prompter{f.Language.Template}
	}
}

// embedder counts the embeddings of a model as uses.
type embedder struct {
	models *Models
	opened *opened
	of     *encoder.Embedder
}

// Embed implements reply.Embedder.
func (e embedder) Embed(ctx context.Context, texts [][]int32) ([][]float32, error) {
	if !e.models.begin(e.opened) {
		return nil, faultOf(replies.ErrClosed)
	}
	defer e.models.leave(e.opened)
	return e.of.Embed(ctx, texts)
}

// safely makes an error of a panic: a model's files are of strangers, and what they hit shall not end the process.
func safely[T any](f func() (T, error)) (x T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}

// replier counts the replies of a model as uses, and says what is wrong so that clients understand.
type replier struct {
	models *Models
	opened *opened
	of     lm.Replier
}

// Reply implements lm.Replier.
func (r replier) Reply(ctx context.Context, q *lm.Request) iter.Seq2[lm.Token, error] {
	return func(yield func(lm.Token, error) bool) {
		if !r.models.begin(r.opened) {
			yield(lm.Token{}, faultOf(replies.ErrClosed))
			return
		}
		defer r.models.leave(r.opened)
		for t, err := range r.of.Reply(ctx, q) {
			if errors.Is(err, replies.ErrFailed) {
				r.models.discard(r.opened)
			}
			if err != nil {
				err = faultOf(err)
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

// begin counts a reply of a model, unless that has been closed.
func (m *Models) begin(x *opened) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.open[x.at] == x:
	case x.replaced && m.open[x.base.at] == x.base:
		x.base.users++
	default:
		return false
	}
	x.users++
	return true
}

// faultOf is an error of a server as clients understand it.
func faultOf(err error) error {
	var large *replies.LargeError
	switch {
	case errors.As(err, &large):
		return api.Invalid("max_tokens", "%v", err)
	case errors.Is(err, replies.ErrBusy), errors.Is(err, replies.ErrClosed):
		return &api.Fault{Status: http.StatusServiceUnavailable, Code: "overloaded", Retry: time.Second, Message: err.Error()}
	}
	return err
}

// Loaded implements reply.Models.
func (m *Models) Loaded(context.Context) ([]reply.Loaded, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []reply.Loaded
	for _, x := range m.open { // sorted below
		if x.model != nil {
			l := reply.Loaded{Listing: x.model.Listing, Memory: x.memory, Until: x.until}
			if x.server != nil && x.base == nil {
				l.Memory += x.server.Stats().Bytes
			}
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b reply.Loaded) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// Pull implements reply.Models.
func (m *Models) Pull(ctx context.Context, name string, tell func(reply.Progress)) error {
	if m.options.Find == nil {
		return api.Unsupported("model", "this gateway serves the models that it was given, and pulls no others")
	}
	if _, err := m.place(name); err == nil {
		return nil // it is here
	}
	return m.options.Find.Pull(ctx, name, tell)
}

// Close ends all replies, and closes all models.
func (m *Models) Close() {
	m.mu.Lock()
	m.closed = true
	var servers []*replies.Server
	for _, x := range m.open { // in any order
		if x.timer != nil {
			x.timer.Stop()
		}
		if x.server != nil && x.base == nil {
			servers = append(servers, x.server)
		}
	}
	clear(m.open)
	m.mu.Unlock()
	for _, s := range servers {
		s.Close()
	}
}

var (
	_ reply.Models = (*Models)(nil)
	_ reply.Drafts = (*Models)(nil)
)
