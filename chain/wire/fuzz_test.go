package wire_test

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"github.com/cosmos/gogoproto/proto"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/auction"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	"github.com/tally-network/tally/core/session"
	"github.com/tally-network/tally/core/tensor"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	sessionsv1 "github.com/tally-network/tally/gen/tally/sessions/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// A receipt keeps its identity on its way through a transaction.
func FuzzReceipt(f *testing.F) {
	r := job.Receipt{Order: canon.Hash{1}, Unit: 3, Provider: "p", Checkpoints: []canon.Hash{{2}, {3}}, FLOPs: 9, Data: job.File{CID: "bafy"}}
	m := wire.ReceiptToProto(&r)
	b, err := proto.Marshal(&m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var m workv1.Receipt
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		r, err := wire.ReceiptFromProto(&m)
		if err != nil {
			return
		}
		again := wire.ReceiptToProto(&r)
		same, err := wire.ReceiptFromProto(&again)
		if err != nil || same.ID() != r.ID() {
			t.Fatalf("a receipt changed: %v", err)
		}
	})
}

// What a custodian shows is read without a panic, and checked without one.
func FuzzShown(f *testing.F) {
	t, err := tensor.FromBytes(tensor.Uint8, tensor.Shape{2, 40}, make([]byte, 80))
	if err != nil {
		f.Fatal(err)
	}
	q := proof.SampleStates(canon.Hash{1}, nil, t.Root())
	a := q.ShowTensor(t)
	if err := q.Check(&a); err != nil {
		f.Fatal(err)
	}
	f.Add(canon.Marshal(&a))
	s := proof.Sample{Seed: canon.Hash{1}}
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := wire.ShownFromBytes(b)
		if err != nil {
			return
		}
		if again := canon.Marshal(&a); !bytes.Equal(again, b) {
			t.Fatalf("%x was read as %x", b, again)
		}
		if err := s.Check(&a); err == nil {
			t.Fatal("an answer leads to the zero hash")
		}
		_ = q.Check(&a)
	})
}

// An opening is the same after a transaction, too.
func FuzzOpening(f *testing.F) {
	o := canon.Opening{N: 2, Index: 1, Entry: canon.Entry{Key: "loss", Value: canon.Hash{1}}, Path: []canon.Hash{{2}}}
	m := wire.OpeningToProto(o)
	b, err := proto.Marshal(&m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var m workv1.Opening
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		o, err := wire.OpeningFromProto(&m)
		if err != nil {
			return
		}
		_ = o.Verify(canon.Hash{}) // must not panic
		again := wire.OpeningToProto(o)
		if same, err := wire.OpeningFromProto(&again); err != nil || same.Entry != o.Entry || same.N != o.N || len(same.Path) != len(o.Path) {
			t.Fatalf("an opening changed: %v", err)
		}
	})
}

// Messages about forced attempts and rules are read without a panic, and rules that
// are taken can be kept.
func FuzzParams(f *testing.F) {
	p := wire.ParamsToProto(job.DefaultParams, wire.Sentences{Carelessness: 1, Absence: 2})
	b, err := proto.Marshal(&p)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var m workv1.Params
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		rules := wire.ParamsFromProto(m)
		if rules.Check() != nil || rules.Equilibrium() != nil {
			return
		}
		again := wire.ParamsToProto(rules, wire.Sentences{Carelessness: m.JailMs, Absence: m.AbsenceMs})
		if again.RetentionMs = m.RetentionMs; again != m {
			t.Fatalf("rules changed: %+v, %+v", again, m)
		}
	})
}

// An order that passes its check can be stored and read again, and keeps its id
// on the way: what the book could not read it must not take.
func FuzzOrder(f *testing.F) {
	o := worktest.Order()
	m := wire.OrderToProto(&o)
	b, err := proto.Marshal(&m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var m marketv1.Order
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		o, err := wire.OrderFromProto(&m)
		if err != nil || o.Check() != nil {
			return
		}
		var back job.Order
		if err := canon.Unmarshal(canon.Marshal(&o), &back); err != nil {
			t.Fatal(err)
		}
		again := wire.OrderToProto(&back)
		same, err := wire.OrderFromProto(&again)
		if err != nil || back.ID() != o.ID() || same.ID() != o.ID() {
			t.Fatalf("an order changed: %v", err)
		}
	})
}

// Targets, outcomes and fragments that are read are the same after a transaction, too.
func FuzzTarget(f *testing.F) {
	fuzzPair(f, wire.TargetToProto(job.ResultTarget(3, "replica", 2)), func(t *testing.T, m *workv1.Target) {
		target, err := wire.TargetFromProto(*m)
		if err != nil {
			return
		}
		if same, err := wire.TargetFromProto(wire.TargetToProto(target)); err != nil || same != target {
			t.Fatalf("%v became %v: %v", target, same, err)
		}
	})
}

func FuzzOutcomes(f *testing.F) {
	truth := wire.OutcomesToProto([]proof.Outcome{{End: canon.Hash{1}}, {End: canon.Hash{2}, Before: canon.Hash{3}}})
	fuzzPair(f, workv1.MsgProveDraw{Truth: truth}, func(t *testing.T, m *workv1.MsgProveDraw) {
		truth, err := wire.OutcomesFromProto(m.Truth)
		if err != nil {
			return
		}
		if same, err := wire.OutcomesFromProto(wire.OutcomesToProto(truth)); err != nil || !slices.Equal(same, truth) {
			t.Fatalf("%v became %v: %v", truth, same, err)
		}
	})
}

func FuzzFragment(f *testing.F) {
	fragment := wire.FragmentToProto(&job.Fragment{Number: 2, Root: canon.Hash{1}, Data: job.File{CID: "bafy", Size: 9}})
	fuzzPair(f, *fragment, func(t *testing.T, m *workv1.Fragment) {
		fragment, err := wire.FragmentFromProto(m)
		if err != nil {
			return
		}
		if same, err := wire.FragmentFromProto(wire.FragmentToProto(fragment)); err != nil || *same != *fragment {
			t.Fatalf("%v became %v: %v", fragment, same, err)
		}
	})
}

func FuzzShow(f *testing.F) {
	show := wire.RevealToProto(&job.Reveal{Receipt: job.Receipt{Provider: "p", Checkpoints: []canon.Hash{{1}, {2}}}, Inner: []canon.Hash{{3}}, Signature: []byte{4}})
	fuzzPair(f, *show, func(t *testing.T, m *workv1.MsgReveal) {
		show, err := wire.RevealFromProto(m)
		if err != nil {
			return
		}
		same, err := wire.RevealFromProto(wire.RevealToProto(&show))
		if err != nil || same.Receipt.ID() != show.Receipt.ID() || same.Salt != show.Salt || !slices.Equal(same.Inner, show.Inner) {
			t.Fatalf("%v became %v: %v", show, same, err)
		}
	})
}

// fuzzPair hands messages that can be read to check. Seed is one of them.
func fuzzPair[M any, P interface {
	*M
	proto.Message
}](f *testing.F, seed M, check func(t *testing.T, m P)) {
	b, err := proto.Marshal(P(&seed))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		m := P(new(M))
		if proto.Unmarshal(b, m) == nil {
			check(t, m)
		}
	})
}

// A certificate comes out of a transaction as it went in, or is refused.
func FuzzCertificate(f *testing.F) {
	c := auction.Certificate{Measure: auction.Standard, Tasks: []uint32{1, 0}, Welfare: 7, Trades: 1}
	c.Sellers[2] = []uint32{3}
	m := wire.CertificateToProto(&c)
	b, err := proto.Marshal(&m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var m auctionv1.Certificate
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		c, err := wire.CertificateFromProto(&m)
		if err != nil {
			return
		}
		again := wire.CertificateToProto(c)
		if same, err := wire.CertificateFromProto(&again); err != nil || !reflect.DeepEqual(c, same) {
			t.Fatalf("a certificate changed: %+v, %+v, %v", c, same, err)
		}
	})
}

// What is read as a lot is written as it was read, but for zeros before it.
func FuzzLot(f *testing.F) {
	f.Add("C:5000@800")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := wire.ParseLot(text)
		if err != nil {
			return
		}
		if again, err := wire.ParseLot(wire.LotText(l)); err != nil || again != l {
			t.Fatalf("%q is %+v, and then %+v, %v", text, l, again, err)
		}
	})
}

// What a side of a session has said is the same after a transaction, whatever it is read as.
func FuzzSigned(f *testing.F) {
	v := session.Voucher{Number: 1, Amount: 2, Root: canon.Root(nil)}
	for _, seed := range []canon.Coded{&v, &session.Terms{Chain: "c"}, &session.Receipt{}, &session.Release{}, &session.Final{}} {
		m := wire.SignedToProto(seed, []byte{1})
		b, err := proto.Marshal(&m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m sessionsv1.Signed
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		same[session.Terms](t, &m)
		same[session.Voucher](t, &m)
		same[session.Receipt](t, &m)
		same[session.Release](t, &m)
		same[session.Final](t, &m)
	})
}

// same reads a statement, and fails if it is written otherwise.
func same[T any, P interface {
	*T
	canon.Coded
}](t *testing.T, m *sessionsv1.Signed) {
	x, err := wire.SignedFromProto[T, P](m)
	if err != nil {
		return
	}
	if again := wire.SignedToProto(P(&x), m.Signature); !bytes.Equal(again.Statement, m.Statement) {
		t.Fatalf("%x was read as %T, and is written %x", m.Statement, x, again.Statement)
	}
}

// Listings come out of a transaction as they went in, or are refused.
func FuzzListings(f *testing.F) {
	l := session.Listing{Model: canon.Hash{1}, Name: "llm", Credit: session.Credit{First: 1, Cap: 2}, Context: 1, Parallel: 1}
	fuzzPair(f, *wire.ListModels("p", []session.Listing{l}), func(t *testing.T, m *sessionsv1.MsgList) {
		all, err := wire.ListingsFromProto(m.Listings)
		if err != nil {
			return
		}
		again, err := wire.ListingsFromProto(wire.ListingsToProto(all))
		if err != nil || !slices.Equal(all, again) {
			t.Fatalf("%v became %v, %v", all, again, err)
		}
	})
}

// A session that a query has shown is one that can have come about, or refused.
func FuzzSession(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := wire.SessionFromBytes(b)
		if err != nil {
			return
		}
		m := wire.SessionToProto(&s)
		if again, err := wire.SessionFromProto(&m); err != nil || again.ID() != s.ID() || !bytes.Equal(m.State, b) {
			t.Fatalf("%x is shown as %v, %v", b, m, err)
		}
	})
}
