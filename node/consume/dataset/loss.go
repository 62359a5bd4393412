package dataset

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/tally-network/tally/core/train"
)

// Loss is the loss section of an order file: a name, and how the loss compares. The name alone will do.
type Loss struct {
	Name        string  `json:"name,omitempty"`
	Output      string  `json:"output,omitempty"` // of the model
	Mask        string  `json:"mask,omitempty"`
	Smoothing   float32 `json:"smoothing,omitempty"`
	Weights     Weights `json:"weights,omitzero"` // of classes
	Delta       float32 `json:"delta,omitempty"`
	Temperature float32 `json:"temperature,omitempty"`
	Beta        float32 `json:"beta,omitempty"`
	Weight      float32 `json:"weight,omitempty"` // of the order's teacher; the rest is that of the labels
}

// UnmarshalJSON also takes a name alone.
func (l *Loss) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &l.Name) == nil {
		return nil
	}
	type plain Loss
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode((*plain)(l))
}

// Weights say how much labels count, by class.
type Weights struct {
	Balanced bool // each class as much as any other
	Of       []float32
}

// UnmarshalJSON implements json.Unmarshaler.
func (w *Weights) UnmarshalJSON(b []byte) error {
	if string(b) == `"balanced"` {
		w.Balanced = true
		return nil
	}
	if json.Unmarshal(b, &w.Of) != nil {
		return errors.New("weights are balanced, or a number for each class, as in [1, 2.5]")
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (w Weights) MarshalJSON() ([]byte, error) {
	if w.Balanced {
		return []byte(`"balanced"`), nil
	}
	return json.Marshal(w.Of)
}

// Objective is a loss as the core knows it.
type Objective struct {
	Name     string // "": the one that fits the target
	Balanced bool   // each class counts as much as any other
	train.LossOptions
}

// Objective returns what the section says.
func (l *Loss) Objective() Objective {
	return Objective{l.Name, l.Weights.Balanced, train.LossOptions{
		Output: l.Output, Mask: l.Mask, Smoothing: l.Smoothing, Weights: l.Weights.Of, Delta: l.Delta, Temperature: l.Temperature, Beta: l.Beta,
	}}
}
