package wire

import (
	"fmt"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/core/proof"
)

// KeptToProto returns what a question to a custodian is about as transactions carry it:
// a unit, or the order's files.
func KeptToProto(unit int) (number uint32, files bool) {
	return uint32(max(unit, 0)), unit == job.OfFiles
}

// KeptFromProto is the inverse of KeptToProto. Files have one name.
func KeptFromProto(unit uint32, files bool) (int, error) {
	switch {
	case files && unit != 0:
		return 0, fmt.Errorf("a question is about the order's files or about unit %d, not about both", unit)
	case files:
		return job.OfFiles, nil
	}
	return int(unit), nil
}

// ShownFromBytes reads what a custodian shows. Transactions carry its canonical encoding.
func ShownFromBytes(b []byte) (s proof.Shown, err error) {
	err = unmarshal(b, proof.MaxShown, &s)
	return s, err
}

// WrongFragmentFromBytes reads what shows a wrong fragment. Transactions carry its canonical
// encoding.
func WrongFragmentFromBytes(b []byte) (w proof.WrongFragment, err error) {
	err = unmarshal(b, proof.MaxWrongFragment, &w)
	return w, err
}

// RefutationFromBytes reads what shows a wrong cost. Transactions carry its canonical encoding.
func RefutationFromBytes(b []byte) (x graph.Refutation, err error) {
	err = unmarshal(b, graph.MaxRefutation, &x)
	return x, err
}

func unmarshal(b []byte, most int, to canon.Coded) error {
	if err := tooMany(len(b), most, "bytes"); err != nil {
		return err
	}
	return canon.Unmarshal(b, to)
}
