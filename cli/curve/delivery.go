package curve

import (
	"path/filepath"

	"github.com/tally-network/tally/internal/replace"
	"github.com/tally-network/tally/node/consume"
)

// Name is the file of the picture beside a model.
const Name = "loss.svg"

// Of returns the losses of a delivery, after each round.
func Of(d *consume.Delivery) (losses []float64) {
	for _, l := range d.Losses {
		losses = append(losses, float64(l))
	}
	return losses
}

// Write draws the losses of a delivery into a folder, and has the delivery name the picture. Too few losses have none.
func Write(d *consume.Delivery, dir string) error {
	picture := SVG("loss of the last step of each round", 1, Of(d))
	if picture == nil {
		return nil
	}
	d.Curve = filepath.Join(dir, Name)
	return replace.File(d.Curve, picture)
}
