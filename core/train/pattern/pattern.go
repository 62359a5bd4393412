// Package pattern chooses initializers of a model by their names.
//
// [Check] says whether patterns may stand in a recipe; [Chosen] returns what they choose.
//
// Invariant: no pattern and no model makes this take long.
package pattern

import (
	"fmt"
	"path"

	"github.com/tally-network/tally/core/graph"
)

// Limits of patterns: a model may have ten thousands of long names, and whoever loads an order
// looks for each pattern in each. path.Match takes at most as many steps as the product of
// their lengths.
const (
	Max         = 1 << 10 // of one kind
	MaxBytes    = 1 << 7  // bytes of one
	maxMatching = 1 << 28 // bytes of the patterns of one kind times those of all names
)

// Check returns an error unless every pattern is one of path.Match, and within its limits.
func Check(kinds ...[]string) error {
	for _, patterns := range kinds {
		if len(patterns) > Max {
			return fmt.Errorf("%d patterns of initializers, limit %d: use * for what their names share", len(patterns), Max)
		}
		for _, p := range patterns {
			if len(p) > MaxBytes {
				return fmt.Errorf("pattern %q... has %d bytes, limit %d: use * for a part of the name", p[:MaxBytes/4], len(p), MaxBytes)
			}
			if _, err := path.Match(p, ""); err != nil {
				return fmt.Errorf("pattern %q: %w", p, err)
			}
		}
	}
	return nil
}

// Chosen returns which initializers of g the patterns choose, which pass Check. One
// that chooses nothing is an error: a misspelt one would let train what should stay. So is what
// would take too long, before it is begun.
func Chosen(g *graph.Graph, patterns []string) (map[string]bool, error) {
	var long, names int64
	for _, p := range patterns {
		long += int64(len(p)) // at most 2^17
	}
	for _, c := range g.Consts {
		if names += int64(len(c.Name)); long > 0 && names > maxMatching/long {
			return nil, fmt.Errorf("%d patterns of %d bytes are too many for so many initializers with names so long: use fewer or shorter ones", len(patterns), long)
		}
	}
	out, used := map[string]bool{}, make([]bool, len(patterns))
	for _, c := range g.Consts {
		for i, p := range patterns {
			if used[i] && out[c.Name] {
				continue
			}
			if ok, _ := path.Match(p, c.Name); ok {
				out[c.Name], used[i] = true, true
			}
		}
	}
	for i, p := range patterns {
		if !used[i] {
			return nil, fmt.Errorf("pattern %q chooses nothing: no initializer has such a name", p)
		}
	}
	return out, nil
}
