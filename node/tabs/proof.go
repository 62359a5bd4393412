package tabs

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/node/client"
)

// Proof is a reply with all by which anybody who has the model can check and dispute it: what was asked and said, and who has signed that.
type Proof struct {
	Terms          session.Terms
	TermsSignature []byte // of the provider; a provider's own proofs have none
	Signed
	Request lm.Request
	Reply   []int32
}

// MaxProof bounds the encoding of a proof in bytes.
const MaxProof = MaxQuestion + 4<<20

// Code walks the fields of p.
func (p *Proof) Code(w *canon.Codec) {
	p.Terms.Code(w)
	w.Blob(&p.TermsSignature, ed25519.SignatureSize)
	p.Signed.Code(w)
	p.Request.Code(w)
	lm.CodeTokens(w, &p.Reply, lm.MaxSent)
}

// Verify returns an error unless the provider has signed terms and receipt, and the receipt is of the request and the reply.
func (p *Proof) Verify() error {
	if err := p.Terms.Check(); err != nil {
		return err
	}
	if err := p.Terms.Verify(p.TermsSignature); err != nil {
		return err
	}
	if err := p.Receipt.Verify(&p.Terms, p.Signature); err != nil {
		return err
	}
	return Right(&p.Receipt, &Question{Request: p.Request}, p.Reply)
}

// Tokens returns those of prompt and reply.
func (p *Proof) Tokens() []int32 { return slices.Concat(p.Request.Prompt, p.Reply) }

// Right returns an error unless a receipt is of a question and its reply.
func Right(r *session.Receipt, q *Question, reply []int32) error {
	switch {
	case r.Kind != q.Kind() || r.Request != q.ID():
		return errors.New("the receipt is of another question")
	case len(reply) == 0:
		return errors.New("the receipt is of no reply")
	case r.Prompt != uint64(len(q.Request.Prompt)) || r.Reply != uint64(len(reply)) || r.Tokens != lm.TokensRoot(slices.Concat(q.Request.Prompt, reply)):
		return errors.New("the receipt is of other tokens")
	}
	return nil
}

// Disputes opens disputes of replies, and plays them.
type Disputes interface {
	Block(ctx context.Context) error
	Open(ctx context.Context, p *Proof) error
}

// Made are requests and replies that may have to be computed again, on the disk: a folder for each session, in it a file for each reply. A
// provider keeps what it has signed for, a challenger what it disputes.
type Made struct{ Dir string }

func (s Made) folder(session canon.Hash) string { return filepath.Join(s.Dir, session.String()) }

func (s Made) file(session, request, tokens canon.Hash) string {
	return filepath.Join(s.folder(session), request.String()+"-"+tokens.String()+".reply")
}

// reply is what a file has.
type reply struct {
	request *lm.Request
	tokens  []int32 // after its prompt
}

// Code walks the fields of r.
func (r *reply) Code(w *canon.Codec) {
	r.request.Code(w)
	lm.CodeTokens(w, &r.tokens, lm.MaxSent)
}

// Keep writes a request and its reply, so that a power cut leaves them.
func (s Made) Keep(session canon.Hash, r *lm.Request, tokens []int32) error {
	if err := os.MkdirAll(s.folder(session), 0o700); err != nil {
		return err
	}
	return durable(s.file(session, r.ID(), lm.TokensRoot(slices.Concat(r.Prompt, tokens))), canon.Marshal(&reply{r, tokens}))
}

// Get reads the request and the reply that a receipt names by their roots.
func (s Made) Get(session, request, tokens canon.Hash) (*lm.Request, []int32, error) {
	b, err := bounded.ReadFile(s.file(session, request, tokens), MaxProof)
	if err != nil {
		return nil, nil, err
	}
	x := &reply{request: &lm.Request{}}
	if err := canon.UnmarshalWithin(b, x, 16*MaxProof); err != nil {
		return nil, nil, fmt.Errorf("the reply to request %s: %w", request, err)
	}
	return x.request, x.tokens, nil
}

// grace is how long replies are kept whatever the chain says: a node may lag behind.
const grace = 24 * time.Hour

// Prune forgets the replies of sessions that the chain has forgotten, but of those to be kept.
func (s Made) Prune(ctx context.Context, c Chain, keep func(session canon.Hash) bool) error {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		id, bad := canon.ParseHash(e.Name())
		info, gone := e.Info()
		if bad != nil || gone != nil || keep(id) || time.Since(info.ModTime()) < grace {
			continue
		}
		if _, bad := c.Session(ctx, id); client.NotFound(bad) {
			err = errors.Join(err, s.Forget(id))
		}
	}
	return err
}

// Forget removes the replies of a session.
func (s Made) Forget(session canon.Hash) error { return os.RemoveAll(s.folder(session)) }
