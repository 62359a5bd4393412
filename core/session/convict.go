package session

import (
	"errors"
	"fmt"
)

// TwoVouchers shows an equivocation of the consumer, which is convicted: two different vouchers of one number.
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
	if a, b := e.Vouchers[0], e.Vouchers[1]; a.Number != b.Number || a == b {
		return nil, fmt.Errorf("vouchers %d and %d convict nobody: want two different ones of one number", a.Number, b.Number)
	}
	return nil, s.convict(&s.Convictions.OfConsumer, e.By, now)
}

// TwoReceipts shows an equivocation of the provider, which is convicted: two different receipts of one number.
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
	if a, b := e.Receipts[0], e.Receipts[1]; a.Number != b.Number || a == b {
		return nil, fmt.Errorf("receipts %d and %d convict nobody: want two different ones of one number", a.Number, b.Number)
	}
	return nil, s.convict(&s.Convictions.OfProvider, e.By, now)
}

// convict notes who has convicted a side, and closes the session. What that costs is taken when it is settled, for
// vouchers still count.
func (s *Session) convict(conviction *string, by string, now int64) error {
	switch {
	case by == "" || len(by) > maxAccount:
		return fmt.Errorf("a reporter of %d bytes: want 1 to %d", len(by), maxAccount)
	case *conviction != "":
		return errors.New("that was shown already")
	}
	*conviction = by
	s.close(now)
	return nil
}
