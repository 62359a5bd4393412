package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tally-network/tally/core/train"
)

// Loss is the loss section of an order file: a name, and how the loss compares. The name alone will do.
type Loss struct {
	Name        string   `json:"name,omitempty"`
	Output      string   `json:"output,omitempty"` // of the model
	Mask        string   `json:"mask,omitempty"`
	Smoothing   float32  `json:"smoothing,omitempty"`
	Weights     Weights  `json:"weights,omitzero"` // of classes
	Delta       float32  `json:"delta,omitempty"`
	Temperature *float32 `json:"temperature,omitempty"` // of similarities, or of logits beside a teacher's; nil: the usual one
	Beta        float32  `json:"beta,omitempty"`
	Weight      *float32 `json:"weight,omitempty"` // of the order's teacher; the rest is that of the labels; nil: a half
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

const (
	similarities  = "contrastive" // the loss that has a temperature without a teacher
	teacherWeight = 0.5           // unless the section says otherwise
)

// Check returns an error for what the section says of a teacher, if there is none or no teacher can be meant. name is the loss's.
func (l *Loss) Check(name string, teacher bool) error {
	t, w := l.Temperature, l.Weight
	switch {
	case w != nil && !teacher:
		return errors.New("problem.loss.weight is that of a teacher: name its ONNX file in problem.teacher, or leave it out; classes have weights")
	case w != nil && !(*w >= 0 && *w <= 1):
		return fmt.Errorf("problem.loss.weight is %v: a teacher weighs from 0 to 1, and the labels the rest", *w)
	case t != nil && !teacher && name != similarities:
		return fmt.Errorf("problem.loss.temperature is that of a teacher, or of the loss %s: name an ONNX file in problem.teacher, or leave it out", similarities)
	case t != nil && teacher && !(*t >= train.MinTemperature && *t <= train.MaxTemperature):
		return fmt.Errorf("problem.loss.temperature is %v: beside a teacher it is from %v to %v, and 2 if it is left out; beyond, rounding outweighs what the teacher says", *t, train.MinTemperature, train.MaxTemperature)
	case t != nil && !(*t > 0):
		return fmt.Errorf("problem.loss.temperature is %v: similarities are divided by it, so it is above 0, and 0.07 if it is left out", *t)
	}
	return nil
}

// TeacherWeight returns how much a teacher weighs beside the labels.
func (l *Loss) TeacherWeight() float32 {
	if l.Weight == nil {
		return teacherWeight
	}
	return *l.Weight
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
	o := Objective{l.Name, l.Weights.Balanced, train.LossOptions{Output: l.Output, Mask: l.Mask, Smoothing: l.Smoothing, Weights: l.Weights.Of, Delta: l.Delta, Beta: l.Beta}}
	if l.Temperature != nil {
		o.Temperature = *l.Temperature
	}
	return o
}
