package train

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tally-network/tally/core/canon"
)

// Best says which of the states that rounds end in is wanted: the one with the best score on held-out records, the
// first of several. Nothing that is computed follows from it; it stands in the recipe so that whoever has the order knows.
type Best struct {
	Metric   string // none: the last state is wanted
	Patience int    // after so many rounds without a better one no more are wanted; 0: all are
}

// maxPatience bounds the rounds without a better one.
const maxPatience = 1 << 16

// Check returns an error unless rounds can be compared so, by some model and loss.
func (b Best) Check() error {
	known := slices.ContainsFunc(metrics, func(m metric) bool { return m.name == b.Metric })
	switch {
	case b.Metric == "" && b.Patience != 0:
		return fmt.Errorf("a patience of %d rounds needs a metric by which they are compared: name it, such as loss", b.Patience)
	case b.Metric != "" && !known:
		var all []string
		for _, m := range metrics {
			if !slices.Contains(all, m.name) {
				all = append(all, m.name)
			}
		}
		return fmt.Errorf("there is no metric %q: choose by %s", b.Metric, strings.Join(all, ", "))
	case b.Patience < 0 || b.Patience > maxPatience:
		return fmt.Errorf("a patience of %d rounds is not between 0 and %d", b.Patience, maxPatience)
	}
	return nil
}

func (b *Best) code(c *canon.Codec) {
	c.String(&b.Metric, 64)
	c.Int(&b.Patience, maxPatience)
}

// Of returns which of some scores is the best, one for each round so far, and whether no more rounds are wanted. It is −1 of none.
func (b *Best) Of(scores []int64) (best int, enough bool) {
	if len(scores) == 0 || b.Metric == "" {
		return len(scores) - 1, false
	}
	i := slices.IndexFunc(metrics, func(m metric) bool { return m.name == b.Metric })
	falls := i >= 0 && metrics[i].falls
	for round, s := range scores {
		if first := scores[best]; s != NoScore && (first == NoScore || falls && s < first || !falls && s > first) {
			best = round
		}
	}
	return best, b.Patience > 0 && len(scores)-1-best >= b.Patience
}
