package fuse

import (
	"fmt"
	"strings"

	"github.com/tally-network/tally/engine/cpu/kernel"
)

// Describe says how a fusion runs.
func (c *Fusion) Describe() kernel.Description {
	return kernel.Description{
		Kernel:   "elementwise",
		Blocking: fmt.Sprintf("%d rows of %d, %d at a time", c.rows, c.width, c.blockRows),
		Fusion:   c.describe(),
	}
}

// describe says what the stages of a fusion are.
func (c *Fusion) describe() string {
	kinds := []struct {
		one, many string
		n         int
	}{{"chain", "chains", 0}, {"map or fold", "maps and folds", 0}, {"load", "loads", 0}, {"transposed load", "transposed loads", len(c.transposed)}}
	for _, all := range [][]stage{c.prologue, c.stages} {
		for i := range all {
			kind := 2
			switch {
			case len(all[i].ops) > 0:
				kind = 0
			case all[i].do != nil:
				kind = 1
			}
			kinds[kind].n++
		}
	}
	var out []string
	for _, k := range kinds {
		if k.n == 1 {
			out = append(out, "1 "+k.one)
		} else if k.n > 1 {
			out = append(out, fmt.Sprint(k.n, " ", k.many))
		}
	}
	if c.scratchBytes > 0 {
		out = append(out, fmt.Sprint(c.scratchBytes, " bytes of scratch"))
	}
	return strings.Join(out, ", ")
}

// Describe says how a producer and its epilogue run.
func (k *ProducerFusion) Describe() kernel.Description {
	d := k.Producer.Describe()
	if d.Handover == kernel.FromAccumulators && !k.tail.ReadsSource() {
		d.Handover = kernel.AfterStoring
	}
	d.Fusion = "epilogue: " + k.tail.describe() + ", " + d.Handover
	return d
}
