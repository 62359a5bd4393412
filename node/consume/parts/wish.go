package parts

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tally-network/tally/chain/address"
)

// Most is how many parts an order may have. Each is followed, paid and judged by itself.
const Most = 64

// Wish says over how many validators an order is split, or over which. The zero Wish splits nothing.
type Wish struct {
	Count      int
	Validators []string // one for each part, in the order of the records; none for those that are cheapest
}

// Parts returns the number of parts, 0 of an order that is not split.
func (w *Wish) Parts() int { return max(w.Count, len(w.Validators)) }

// IsZero reports whether nothing is split.
func (w Wish) IsZero() bool { return w.Parts() == 0 }

// UnmarshalJSON implements json.Unmarshaler.
func (w *Wish) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &w.Count) != nil && json.Unmarshal(b, &w.Validators) != nil {
		return errors.New("write a number of validators, as 3, or a list of them, as [tally1…, tally1…]")
	}
	if n := w.Parts(); n < 2 || n > Most {
		return fmt.Errorf("%d parts: write 2 to %d, or leave it out", n, Most)
	}
	for i, v := range w.Validators {
		if _, err := address.Parse(v); err != nil {
			return fmt.Errorf("%w: tally query market offers lists the validators that sell", err)
		}
		if slices.Contains(w.Validators[:i], v) {
			return fmt.Errorf("it names %s twice: it would see two parts: name another validator", v)
		}
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (w Wish) MarshalJSON() ([]byte, error) {
	if w.Validators != nil {
		return json.Marshal(w.Validators)
	}
	return json.Marshal(w.Count)
}

// Check returns an error for conditions under which somebody could see several parts of an order that is split.
func (w *Wish) Check(validator string, auction bool, replicas int) error {
	switch {
	case w.Parts() == 0:
	case validator != "":
		return errors.New("conditions.split and conditions.validator: name a validator for each part, as in split: [tally1…, tally1…], and leave validator out")
	case auction:
		return errors.New("conditions.split and conditions.auction: a clearing may sell one provider several parts: leave one of the two out")
	case replicas != 0:
		return errors.New("conditions.split and assurance.replicas: replicas are drawn from the providers of all validators, who could see several parts: write audit: {…} or watched: true")
	}
	return nil
}
