package train

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/graph"
)

// Recipe says how a model is trained.
type Recipe struct {
	Loss         string   // next-token-cross-entropy
	Optimizer    string   // sgd or adamw
	LearningRate float32  // after the warm-up
	Warmup       int      // steps over which the rate grows linearly from 0
	Beta1, Beta2 float32  // decay rates of the moments (adamw)
	Epsilon      float32  // added to the root of the second moment (adamw)
	WeightDecay  float32  // a step, relative to the rate; not for tensors with fewer than two axes
	Batch        int      // records a step
	Frozen       []string // path.Match patterns of initializers that stay as they are
}

// Check returns an error unless every field is in its range.
func (r Recipe) Check() error {
	if _, ok := losses[r.Loss]; !ok {
		return fmt.Errorf("loss %q is not supported; use %s", r.Loss, known(losses))
	}
	if _, ok := optimizers[r.Optimizer]; !ok {
		return fmt.Errorf("optimizer %q is not supported; use %s", r.Optimizer, known(optimizers))
	}
	switch {
	case !(r.LearningRate > 0 && r.LearningRate <= 1e6):
		return fmt.Errorf("learning rate %v is not between 0 and a million", r.LearningRate)
	case r.Warmup < 0 || r.Warmup > 1<<24:
		return fmt.Errorf("a warm-up of %d steps is not between 0 and 2^24", r.Warmup)
	case !(r.Beta1 >= 0 && r.Beta1 < 1 && r.Beta2 >= 0 && r.Beta2 < 1):
		return fmt.Errorf("decay rates %v and %v are not between 0 and 1", r.Beta1, r.Beta2)
	case !(r.Epsilon >= 0 && r.Epsilon <= 1) || r.Optimizer == "adamw" && r.Epsilon == 0:
		return fmt.Errorf("epsilon %v is not between 0 and 1", r.Epsilon)
	case !(r.WeightDecay >= 0 && r.WeightDecay <= 1e6):
		return fmt.Errorf("weight decay %v is not between 0 and a million", r.WeightDecay)
	case r.Batch < 1 || r.Batch > 1<<30:
		return fmt.Errorf("a batch of %d records is not between 1 and 2^30", r.Batch)
	}
	for _, p := range r.Frozen {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("pattern %q: %w", p, err)
		}
	}
	return nil
}

// freezes reports whether the initializer called name stays as it is.
func (r Recipe) freezes(name string) bool {
	return slices.ContainsFunc(r.Frozen, func(p string) bool {
		ok, _ := path.Match(p, name)
		return ok
	})
}

// checkFrozen returns an error if a pattern freezes nothing of g: a misspelt one
// would let train what should stay.
func (r Recipe) checkFrozen(g *graph.Graph) error {
	for _, p := range r.Frozen {
		if !slices.ContainsFunc(g.Consts, func(c graph.Const) bool { ok, _ := path.Match(p, c.Name); return ok }) {
			return fmt.Errorf("pattern %q freezes nothing: no initializer has such a name", p)
		}
	}
	return nil
}

func known[V any](table map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(table)), " or ")
}
