package wire_test

import (
	"strings"
	"testing"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
	marketv1 "github.com/tally-network/tally/gen/tally/market/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/testkit/worktest"
)

// Lists that are longer than anything they could stand for are refused by their length,
// before their items are read: these items are malformed, and nobody says so.
func TestListsAreBounded(t *testing.T) {
	order := worktest.Order()
	id := order.ID().String()
	for name, read := range map[string]func() error{
		"checkpoints of a receipt": func() error {
			_, err := wire.ReceiptFromProto(&workv1.Receipt{Order: id, Start: make([]byte, canon.HashSize), Checkpoints: make([][]byte, job.MaxSegments+2)})
			return err
		},
		"path of an opening": func() error {
			_, err := wire.OpeningFromProto(&workv1.Opening{Root: make([]byte, canon.HashSize), Path: make([][]byte, 33)})
			return err
		},
		"outcomes of a unit": func() error {
			_, err := wire.OutcomesFromProto(make([]workv1.Outcome, job.MaxSegments+1))
			return err
		},
		"files of an order": func() error {
			m := wire.OrderToProto(&order)
			m.Problem.Files = make([]marketv1.File, job.MaxFiles+1)
			_, err := wire.OrderFromProto(&m)
			return err
		},
		"what a custodian shows": func() error {
			_, err := wire.ShownFromBytes(make([]byte, proof.MaxShown+1))
			return err
		},
		"a wrong fragment": func() error {
			_, err := wire.WrongFragmentFromBytes(make([]byte, proof.MaxWrongFragment+1))
			return err
		},
	} {
		if err := read(); err == nil || !strings.Contains(err.Error(), "want at most") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
