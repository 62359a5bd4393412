package wire

import (
	"fmt"

	"github.com/tally-network/tally/core/canon"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
)

// maxPath is the depth of a tree with as many entries as Opening.count can say.
const maxPath = 32

// OpeningToProto returns o as transactions carry it.
func OpeningToProto(o canon.Opening) workv1.Opening {
	return workv1.Opening{
		Count: uint32(o.N), Index: uint32(o.Index), Name: o.Entry.Key, Root: o.Entry.Value[:], Path: hashesToProto(o.Path),
	}
}

// OpeningFromProto is the inverse of OpeningToProto.
func OpeningFromProto(m *workv1.Opening) (o canon.Opening, err error) {
	o = canon.Opening{N: int(m.Count), Index: int(m.Index), Entry: canon.Entry{Key: m.Name}}
	if o.Entry.Value, err = canon.HashOf(m.Root); err != nil {
		return o, fmt.Errorf("root: %w", err)
	}
	if o.Path, err = hashesFromProto(m.Path, maxPath); err != nil {
		return o, fmt.Errorf("path: %w", err)
	}
	return o, nil
}
