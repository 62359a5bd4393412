// Package dataset makes of a source of data what an order trains on: records of fields, of which some are held out.
//
// An [Options] is the data section of an order file. Call [Options.Read] for the table that its source
// holds, [Options.OpenEncoder] for what makes tokens of its texts, and [Options.Make] for a [Dataset]: the fields, the records, and the model with what the data
// teaches before training written into it as constants. So what is trained takes values as the source
// has them. [Options.GoOn] makes one for a [Base], an earlier order whose training goes on with other records.
//
// Invariants: means, deviations and what replaces missing values are of the training records alone. The same
// source, options and model give the same dataset.
//
// Source: docs/spec/tables.md.
package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/core/record"
	"github.com/tally-network/tally/core/tensor"
	"github.com/tally-network/tally/core/train"
	"github.com/tally-network/tally/format/schema"
)

// Options are the data section of an order file.
type Options struct {
	Source    string            `json:"source"`             // a file, or a folder of images
	Target    string            `json:"target,omitempty"`   // column to predict
	Features  []string          `json:"features,omitempty"` // columns of the one input that no column is named for; none: all that are left
	Ignore    []string          `json:"ignore,omitempty"`   // columns that nothing reads
	Kinds     map[string]string `json:"kinds,omitempty"`    // overrides the kinds that the reader infers
	Missing   string            `json:"missing,omitempty"`  // refuse, which is the default; mean, median or mode of numbers, and the mode of others
	Normalize string            `json:"normalize,omitempty"`
	HeldOut   HeldOut           `json:"heldOut,omitzero"`
	Size      [2]int            `json:"size,omitzero"` // height and width of images; none: what the model reads
	Crop      bool              `json:"crop,omitempty"`
	Augment   []Augment         `json:"augment,omitempty"` // what happens to records of training, in this order
	Text      Texts             `json:"text,omitzero"`     // how texts become tokens

	Allocator tensor.Allocator `json:"-"` // in which lies what is read and made; nil: Go's
}

// HeldOut says which records training never sees.
type HeldOut struct {
	Share    float64 `json:"share,omitempty"`    // of the records; 0: a tenth
	Stratify bool    `json:"stratify,omitempty"` // of each class
	Group    string  `json:"group,omitempty"`    // a column: records of one value stay together
	Seed     uint64  `json:"seed,omitempty"`
	// In their place: what a column says in records that are held out.
	Column string `json:"column,omitempty"`
	Value  string `json:"value,omitempty"`
}

// UnmarshalJSON refuses a share of 0 that is written: none would be meant.
func (h *HeldOut) UnmarshalJSON(b []byte) error {
	var said struct{ Share *float64 }
	if json.Unmarshal(b, &said) == nil && said.Share != nil && *said.Share == 0 {
		return errors.New("a share of 0: each order holds out some records, of which its scores are; write a small share, such as 0.01, or leave it out for a tenth")
	}
	type plain HeldOut
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode((*plain)(h))
}

// How numbers and pixels enter a model.
const (
	Standard = "standard" // less their mean, divided by their deviation, over the training records
	None     = "none"     // as they are
)

// UnmarshalJSON also takes the name of a source alone.
func (o *Options) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &o.Source) == nil {
		return nil
	}
	type plain Options
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode((*plain)(o))
}

// Check returns an error for what is wrong whatever the source holds.
func (o *Options) Check() error {
	h := &o.HeldOut
	switch {
	case o.Source == "":
		return errors.New("data.source is missing: name a file, or a folder of images")
	case o.Normalize != "" && o.Normalize != Standard && o.Normalize != None:
		return fmt.Errorf("data.normalize is %q: write %s or %s", o.Normalize, Standard, None)
	case o.Missing != "" && o.rules() == nil:
		return fmt.Errorf("data.missing is %q: write refuse, mean, median or mode", o.Missing)
	case !(h.Share >= 0 && h.Share < 1):
		return fmt.Errorf("data.heldOut.share is %v: write what part of the records is held out, such as 0.2", h.Share)
	case (h.Column == "") != (h.Value == ""):
		return errors.New("data.heldOut: column and value belong together")
	case h.Column != "" && (h.Share != 0 || h.Stratify || h.Group != ""):
		return errors.New("data.heldOut: a column says what is held out, so leave share, stratify and group out")
	case h.Stratify && h.Group != "":
		return errors.New("data.heldOut: stratify and group: choose one")
	}
	for i := range o.Augment {
		if _, _, err := o.Augment[i].kind(); err != nil {
			return err
		}
	}
	return o.Text.check()
}

// Dataset is what an order trains on.
type Dataset struct {
	Model     *graph.Graph           // with constants
	Own       map[string]graph.Value // values of it, by input: what the input was before it had constants
	Fields    record.Fields
	Objective Objective
	Augment   []train.Augment
	Training  *tensor.Tensor // int32 [records words]
	HeldOut   *tensor.Tensor
	Schema    schema.Schema
	Tokenizer []byte // tokenizer.json; nil if no text is read

	Texts, Truncated int // how many there are, and of how many the end is left out
	Dropped          int // records of texts of which nothing would be learnt
}

// listed quotes names.
func listed(names []string) string {
	const most = 12
	if len(names) > most {
		return fmt.Sprintf("%q and %d others", names[:most], len(names)-most)
	}
	return fmt.Sprintf("%q", names)
}

// sameName reports whether a column is named for an input: "petal width" is for "petal_width".
func sameName(column, input string) bool {
	plain := strings.NewReplacer(" ", "_", "-", "_", ".", "_")
	return strings.EqualFold(plain.Replace(column), plain.Replace(input))
}
