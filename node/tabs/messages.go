package tabs

import (
	"crypto/ed25519"
	"math"
	"time"

	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/model/files"
	"github.com/tally-network/tally/model/lm"
	"github.com/tally-network/tally/p2p"
)

// Limits of messages, in bytes.
const (
	MaxQuestion = 4 << 20   // a question: a prompt of about a million tokens
	maxPiece    = 256 << 10 // a piece of an answer: tokens with the likeliest others
	MaxPart     = 512 << 10 // a part of a model's file
	MaxBills    = 64        // receipts that are told at once
	maxSmall    = 2 << 10
)

// Beat is how often a provider that has nothing to say shows that it is still there.
const Beat = 10 * time.Second

// Payment comes with each question: the newest voucher of the session, unless nothing was paid yet.
type Payment struct {
	Session   canon.Hash
	Voucher   session.Voucher
	Signature []byte // none, with a voucher of no number
}

// Code walks the fields of p.
func (p *Payment) Code(w *canon.Codec) {
	w.Hash(&p.Session)
	p.Voucher.Code(w)
	w.Blob(&p.Signature, ed25519.SignatureSize)
}

// Question asks for a reply or, with tokens of one, for a check of it.
type Question struct {
	Payment
	Request lm.Request
	Reply   []int32 // that is to be checked
}

// Kind is what the question is for.
func (q *Question) Kind() session.Kind {
	if len(q.Reply) > 0 {
		return session.OfCheck
	}
	return session.OfReply
}

// ID returns what a receipt calls the request: its identity, and of a check one that binds the reply.
func (q *Question) ID() canon.Hash { return RequestID(&q.Request, q.Reply) }

// RequestID is [Question.ID].
func RequestID(r *lm.Request, reply []int32) canon.Hash {
	id := r.ID()
	if len(reply) == 0 {
		return id
	}
	root := lm.TokensRoot(reply)
	return canon.Sum(canon.DomainRequest, canon.Encode(func(e *canon.Encoder) {
		e.Hash(id)
		e.Uint(uint64(len(reply))) // pages are filled up
		e.Hash(root)
	}))
}

// Code walks the fields of q.
func (q *Question) Code(w *canon.Codec) {
	q.Payment.Code(w)
	q.Request.Code(w)
	lm.CodeTokens(w, &q.Reply, lm.MaxSent)
}

// Piece is what is new of an answer. An empty one says that the provider is still there.
type Piece struct {
	Tokens []lm.Token
	Wrong  int     // of a check: the first wrong token of the reply, plus 1; 0: there is none
	Bill   *Signed // with the last piece
}

// Code walks the fields of p.
func (p *Piece) Code(w *canon.Codec) {
	canon.Seq(w, &p.Tokens, lm.MaxSent, 4, codeToken)
	w.Int(&p.Wrong, lm.MaxSent)
	billed := p.Bill != nil
	w.Bool(&billed)
	if !billed {
		return
	}
	if p.Bill == nil {
		p.Bill = &Signed{}
	}
	p.Bill.Code(w)
}

// codeToken walks what is sent of a token: its pages only the bill has, salted.
func codeToken(w *canon.Codec, t *lm.Token) {
	codeCandidate(w, &t.ID, &t.LogProb)
	canon.Seq(w, &t.Likeliest, lm.MaxLikeliest, 2, func(w *canon.Codec, c *lm.Candidate) { codeCandidate(w, &c.ID, &c.LogProb) })
	w.String((*string)(&t.Reason), 8)
}

func codeCandidate(w *canon.Codec, id *int32, p *float32) {
	n, bits := int(*id), uint64(math.Float32bits(*p))
	w.Int(&n, math.MaxInt32)
	w.U64(&bits)
	if bits > math.MaxUint32 {
		w.Fail("a number of more than 32 bits")
	}
	if w.Reading() {
		*id, *p = int32(n), math.Float32frombits(uint32(bits))
	}
}

// Standing asks what receipts there are from a number on, and pays.
type Standing struct {
	Payment
	From uint64
}

// Code walks the fields of s.
func (s *Standing) Code(w *canon.Codec) {
	s.Payment.Code(w)
	w.U64(&s.From)
}

// Bills are receipts in their order.
type Bills struct{ Receipts []Signed }

// Code walks the fields of b.
func (b *Bills) Code(w *canon.Codec) {
	canon.Seq(w, &b.Receipts, MaxBills, 5*canon.HashSize, func(w *canon.Codec, s *Signed) { s.Code(w) })
}

// Numbered names a receipt of a session.
type Numbered struct {
	Session canon.Hash
	Number  uint64
}

// Code walks the fields of n.
func (n *Numbered) Code(w *canon.Codec) {
	w.Hash(&n.Session)
	w.U64(&n.Number)
}

// Root is the root of pages behind a receipt.
type Root struct{ Pages canon.Hash }

// Code walks the fields of r.
func (r *Root) Code(w *canon.Codec) { w.Hash(&r.Pages) }

// Ending ends a session by a final that the consumer has signed.
type Ending struct {
	Final     session.Final
	Signature []byte
}

// Code walks the fields of e.
func (e *Ending) Code(w *canon.Codec) {
	e.Final.Code(w)
	w.Blob(&e.Signature, ed25519.SignatureSize)
}

// Signature is what a side signs with.
type Signature struct{ Signature []byte }

// Code walks the fields of s.
func (s *Signature) Code(w *canon.Codec) { w.Blob(&s.Signature, ed25519.SignatureSize) }

// Taken says that a reply is disputed.
type Taken struct{}

// Code walks no fields.
func (*Taken) Code(*canon.Codec) {}

// PartOf asks for a part of a model's file: 0 is its manifest, n the n-th file that this names.
type PartOf struct {
	Model canon.Hash
	File  int
	At    int
}

// Code walks the fields of p.
func (p *PartOf) Code(w *canon.Codec) {
	w.Hash(&p.Model)
	w.Int(&p.File, 1<<10)
	w.Int(&p.At, files.MaxBytes)
}

// Bytes are the bytes of a part.
type Bytes struct{ Bytes []byte }

// Code walks the fields of b.
func (b *Bytes) Code(w *canon.Codec) { w.Blob(&b.Bytes, MaxPart) }

// The protocols of a session. The consumer calls, in this order: Agreements for terms, which it then opens on the chain; Answers and Checks as often as it
// wants; Endings.
var (
	// Agreements has the provider sign terms.
	Agreements = typed[session.Terms, Signature]("terms", maxSmall, maxSmall, 2)
	// Answers gives replies, token by token.
	Answers = streaming("reply", time.Hour, 128)
	// Checks re-executes replies.
	Checks = streaming("check", time.Hour, 32)
	// Accounts pays, and tells receipts that did not come.
	Accounts = typed[Standing, Bills]("account", maxSmall, MaxBills*512, 4)
	// Roots tells the root of pages behind a receipt, once others have said theirs.
	Roots = typed[Numbered, Root]("pages", maxSmall, maxSmall, 8)
	// Endings has the provider sign a final.
	Endings = typed[Ending, Signature]("final", maxSmall, maxSmall, 2)
	// Proofs hands a wrong reply to somebody who has found it wrong, to dispute it.
	Proofs = typed[Proof, Taken]("proof", MaxProof, maxSmall, 1)
	// Parts hands over files of models.
	Parts = typed[PartOf, Bytes]("model", maxSmall, MaxPart+maxSmall, 4)
)

func streaming(name string, timeout time.Duration, all int) p2p.Streaming {
	return p2p.Streaming{
		ID: idOf(name), MaxRequest: MaxQuestion, MaxMessage: maxPiece, Silence: 3 * Beat, Timeout: timeout, PerPeer: all / 8, Answers: all,
	}
}

func typed[Q, A any, PQ interface {
	*Q
	canon.Coded
}, PA interface {
	*A
	canon.Coded
}](name string, request, response, perPeer int) p2p.Typed[Q, A] {
	return p2p.Typed[Q, A]{
		Protocol: p2p.Protocol{ID: idOf(name), MaxRequest: request, MaxResponse: response, Timeout: 20 * time.Second, PerPeer: perPeer},
		Request:  codec[Q, PQ](), Response: codec[A, PA](),
	}
}

func codec[T any, P interface {
	*T
	canon.Coded
}]() p2p.Codec[T] {
	return p2p.Codec[T]{
		Encode: func(v T) []byte { return canon.Marshal(P(&v)) },
		Decode: func(b []byte) (v T, err error) {
			err = canon.UnmarshalWithin(b, P(&v), 64<<20)
			return v, err
		},
	}
}

func idOf(name string) protocol.ID { return protocol.ID("/tally/session/" + name + "/1.0.0") }
