package session

import (
	"errors"
	"fmt"
)

// TwoVouchers shows two vouchers of one number, which differ: the consumer is convicted.
type TwoVouchers struct {
	By         string // who shows them
	Vouchers   [2]Voucher
	Signatures [2][]byte
}

func (e TwoVouchers) apply(s *Session, now int64) ([]Effect, error) {
	for i := range e.Vouchers {
		if err := said(s.ID(), s.Terms.Consumer, &e.Vouchers[i], e.Signatures[i]); err != nil {
			return nil, err
		}
	}
	if a, b := e.Vouchers[0], e.Vouchers[1]; a.Sequence != b.Sequence || a == b {
		return nil, fmt.Errorf("vouchers %d and %d convict nobody: want two different ones of one number", a.Sequence, b.Sequence)
	}
	return nil, s.convict(&s.Lies.OfConsumer, e.By, now)
}

// TwoReceipts shows two receipts of one number, which differ: the provider is convicted.
type TwoReceipts struct {
	By         string // who shows them
	Receipts   [2]Receipt
	Signatures [2][]byte
}

func (e TwoReceipts) apply(s *Session, now int64) ([]Effect, error) {
	for i := range e.Receipts {
		if err := said(s.ID(), s.Terms.Provider, &e.Receipts[i], e.Signatures[i]); err != nil {
			return nil, err
		}
	}
	if a, b := e.Receipts[0], e.Receipts[1]; a.Sequence != b.Sequence || a == b {
		return nil, fmt.Errorf("receipts %d and %d convict nobody: want two different ones of one number", a.Sequence, b.Sequence)
	}
	return nil, s.convict(&s.Lies.OfProvider, e.By, now)
}

// Convicted tells that a dispute has shown a receipt of the provider to be wrong.
type Convicted struct{ By string }

func (e Convicted) apply(s *Session, now int64) ([]Effect, error) {
	return nil, s.convict(&s.Lies.OfProvider, e.By, now)
}

// convict notes who has shown that a side lied, and closes the session. What that costs is taken when it is settled, for
// vouchers still count.
func (s *Session) convict(lie *string, by string, now int64) error {
	switch {
	case by == "" || len(by) > maxAccount:
		return fmt.Errorf("a reporter of %d bytes: want 1 to %d", len(by), maxAccount)
	case *lie != "":
		return errors.New("that was shown already")
	}
	*lie = by
	s.close(now)
	return nil
}
