package role

import (
	"time"
	"unicode/utf8"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/p2p"
)

// UnitOffer is a lead's question to a provider: will you take this unit?
type UnitOffer struct {
	Order         canon.Hash
	Unit, Attempt int
}

// UnitAnswer is the provider's signed acceptance, or why it does not take the
// unit now.
type UnitAnswer struct {
	Signature []byte
	Reason    string
}

// MaxReason bounds the reason of an answer in bytes.
const MaxReason = 512

// Clip returns s without what passes n bytes, cut between characters.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Code walks the fields of o.
func (o *UnitOffer) Code(w *canon.Codec) {
	w.Hash(&o.Order)
	w.Int(&o.Unit, 1<<20)
	w.Int(&o.Attempt, 1<<20)
}

// Code walks the fields of a.
func (a *UnitAnswer) Code(w *canon.Codec) {
	w.Blob(&a.Signature, 64)
	w.String(&a.Reason, MaxReason)
}

func coded[T any, P interface {
	*T
	canon.Coded
}]() p2p.Codec[T] {
	return p2p.Codec[T]{
		Encode: func(v T) []byte { return canon.Marshal(P(&v)) },
		Decode: func(b []byte) (v T, err error) {
			err = canon.Unmarshal(b, P(&v))
			return v, err
		},
	}
}

// Offers is the protocol by which leads give out units.
var Offers = p2p.Typed[UnitOffer, UnitAnswer]{
	Protocol: p2p.Protocol{ID: "/tally/work/1.0.0", MaxRequest: 256, MaxResponse: 1024, Timeout: 20 * time.Second, PerPeer: 4},
	Request:  coded[UnitOffer](),
	Response: coded[UnitAnswer](),
}
