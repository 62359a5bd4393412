package train

import (
	"fmt"
	"path"

	"github.com/tally-network/tally/core/graph"
)

// Limits of patterns: a model may have ten thousands of long names, and whoever loads an order
// looks for each pattern in each. path.Match takes at most as many steps as the product of
// their lengths.
const (
	maxPatterns = 1 << 10 // of one kind
	maxPattern  = 1 << 7  // bytes of one
	maxMatching = 1 << 28 // bytes of the patterns of one kind times those of all names
)

// checkPatterns returns an error unless every pattern is one of path.Match, and within its limits.
func checkPatterns(kinds ...[]string) error {
	for _, patterns := range kinds {
		if len(patterns) > maxPatterns {
			return fmt.Errorf("%d patterns of initializers, limit %d: use * for what their names share", len(patterns), maxPatterns)
		}
		for _, p := range patterns {
			if len(p) > maxPattern {
				return fmt.Errorf("pattern %q... has %d bytes, limit %d: use * for a part of the name", p[:maxPattern/4], len(p), maxPattern)
			}
			if _, err := path.Match(p, ""); err != nil {
				return fmt.Errorf("pattern %q: %w", p, err)
			}
		}
	}
	return nil
}

// chosen returns which initializers of g the patterns choose, which pass checkPatterns. One
// that chooses nothing is an error: a misspelt one would let train what should stay. So is what
// would take too long, before it is begun.
func chosen(g *graph.Graph, patterns []string) (map[string]bool, error) {
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
