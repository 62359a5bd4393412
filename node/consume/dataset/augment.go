package dataset

import (
	"errors"
	"fmt"

	"github.com/tally-network/tally/core/record"
	"github.com/tally-network/tally/core/train"
)

// Augment is one change of records by chance, while they are trained on: a flip, a shift or noise.
type Augment struct {
	Flip   float32  `json:"flip,omitempty"`   // odds that an axis is turned round
	Shift  int      `json:"shift,omitempty"`  // by at most so many places either way, zero where nothing was
	Noise  float32  `json:"noise,omitempty"`  // its standard deviation, in the source's units
	Axis   int      `json:"axis,omitempty"`   // from the last, which is 1; none: width of a flip, height and width of a shift
	Fields []string `json:"fields,omitempty"` // that change alike; none: the images
}

// kind returns what the change is, and by how much.
func (a *Augment) kind() (kind string, amount float32, err error) {
	given := 0
	for _, k := range []struct {
		name   string
		amount float32
	}{{"flip", a.Flip}, {"shift", float32(a.Shift)}, {"noise", a.Noise}} {
		if k.amount != 0 {
			kind, amount = k.name, k.amount
			given++
		}
	}
	if given != 1 {
		return "", 0, errors.New("data.augment: each item is one of {flip: ODDS}, {shift: PLACES} and {noise: DEVIATION}")
	}
	return kind, amount, nil
}

// augmented returns what a recipe says of the changes of the data section.
func (o *Options) augmented(fields record.Fields) (out []train.Augment, err error) {
	var images []string
	for _, f := range fields {
		if len(f.Shape) > 1 && f.Name != targetField {
			images = append(images, f.Name)
		}
	}
	for i := range o.Augment {
		a := &o.Augment[i]
		kind, amount, err := a.kind()
		if err != nil {
			return nil, err
		}
		made := train.Augment{Kind: kind, Amount: amount, Fields: a.Fields}
		if len(made.Fields) == 0 {
			made.Fields = images
		}
		if len(made.Fields) == 0 && len(fields) == 0 {
			return nil, errors.New("data.augment: records have no fields to change: leave it out")
		}
		if len(made.Fields) == 0 {
			return nil, fmt.Errorf("data.augment: records have no images to change: name fields, such as {%s: %v, fields: [%s]}", kind, amount, fields[0].Name)
		}
		for _, made.Axis = range a.axes(kind, fields, made.Fields[0]) {
			out = append(out, made)
		}
	}
	return out, nil
}

// axes returns the axes of a field along which it changes: of an image width, or height and width. Up to four places
// in the last of three axes are channels.
func (a *Augment) axes(kind string, fields record.Fields, of string) []int {
	width := 1
	if f, ok := fields.Find(of); ok && len(f.Shape) == 3 && f.Shape[2] <= 4 {
		width = 2
	}
	switch {
	case kind == "noise" || a.Axis > 0:
		return []int{a.Axis}
	case kind == "flip":
		return []int{width}
	}
	return []int{width + 1, width}
}
