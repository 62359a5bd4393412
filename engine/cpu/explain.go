package cpu

import (
	"context"
	"strings"
	"time"

	"github.com/tally-network/tally/core/graph"
	"github.com/tally-network/tally/engine"
	"github.com/tally-network/tally/engine/cpu/plan"
)

// Explain implements engine.Explainer. Times are those of one run; the first of a plan also
// takes fresh memory into use.
func (r *runner) Explain(ctx context.Context, in graph.Inputs) (*graph.State, []engine.Task, error) {
	var tasks []engine.Task
	var begun time.Time
	after, err := r.run(ctx, &r.fused, in, func(a *workspace, t int) error {
		x := explain(a.plan, t)
		now := time.Now()
		if t == 0 {
			begun = now
		}
		err := a.runTask(t)
		x.Begin, x.Took = now.Sub(begun), time.Since(now)
		tasks = append(tasks, x)
		return err
	})
	return after, tasks, err
}

// explain says what task t of a plan does.
func explain(pl *plan.Plan, t int) engine.Task {
	k, p := &pl.Tasks[t], pl.Program
	d := k.Describe()
	out := engine.Task{
		Nodes: k.Nodes, Ops: operators(p, k.Nodes), Kernel: d.Kernel, Blocking: d.Blocking, Packing: d.Packing, Fusion: d.Fusion,
		Blocks: k.Blocks(), Grain: k.Grain,
	}
	for _, i := range k.Nodes {
		flops, _ := p.Nodes[i].Cost()
		out.FLOPs += flops
	}
	seen := map[graph.Ref]bool{}
	for _, r := range k.Args {
		if typ, shape, err := p.Typed(r, len(p.Nodes)); err == nil && !seen[r] {
			seen[r] = true
			out.Bytes += typ.Size() * shape.Elements()
		}
	}
	for _, i := range k.Outs {
		offset, bytes := pl.Place(i)
		out.Bytes += bytes
		out.Outputs = append(out.Outputs, engine.Place{Node: i, Offset: offset, Bytes: bytes})
	}
	return out
}

// operators names the model's operators that nodes come from, each once in a row.
func operators(p *graph.Program, nodes []int) string {
	var out []string
	for _, i := range nodes {
		if op := p.Nodes[i].Origin.Op; op != "" && (len(out) == 0 || out[len(out)-1] != op) {
			out = append(out, op)
		}
	}
	return strings.Join(out, " ")
}
