package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/charmbracelet/x/ansi"

	"github.com/tally-network/tally/cli/numbers"
	"github.com/tally-network/tally/engine"
)

// What tally run-onnx --explain shows: where the time of a run goes.

// explain writes the tasks of a run as a table, in their order.
func explain(w io.Writer, tasks []engine.Task) {
	var all, flops int64
	for i := range tasks {
		all += int64(tasks[i].Took)
		flops += int64(tasks[i].FLOPs)
	}
	fmt.Fprintf(w, "\n%s in %.1f µs, %.1f GFLOP/s\n", numbers.Several(len(tasks), "task"), float64(all)/1000, ratio(flops, all))
	fmt.Fprintf(w, "%4s %9s %5s %8s %7s %6s  %s\n", "task", "µs", "%", "GFLOP/s", "GB/s", "node", "operators, and how they run")
	for i := range tasks {
		t := &tasks[i]
		fmt.Fprintf(w, "%4d %9.1f %5.1f %8.1f %7.1f %6d  %s\n", i, float64(t.Took)/1000, 100*ratio(int64(t.Took), all),
			ratio(int64(t.FLOPs), int64(t.Took)), ratio(int64(t.Bytes), int64(t.Took)), t.Nodes[0], ansi.Truncate(t.Ops, 59, ""))
		for _, line := range []struct{ what, text string }{
			{t.Kernel + ":", t.Blocking + fmt.Sprintf("; %s, %d worth a thread", numbers.Several(t.Blocks, "block"), t.Grain)},
			{"packing:", t.Packing}, {"fused:", t.Fusion}, {"place:", places(t.Outputs)},
		} {
			if line.text != "" {
				fmt.Fprintf(w, "%45s %s %s\n", "", line.what, line.text)
			}
		}
	}
}

// places says where outputs lie.
func places(all []engine.Place) string {
	text := ""
	for i, p := range all {
		if i == 4 {
			return text + fmt.Sprintf(", and %d more", len(all)-i)
		}
		if i > 0 {
			text += ", "
		}
		where := fmt.Sprintf("at %d of the arena", p.Offset)
		if p.Offset < 0 {
			where = "of their own"
		}
		text += fmt.Sprintf("node %d %d bytes %s", p.Node, p.Bytes, where)
	}
	return text
}

func ratio(a, b int64) float64 { return float64(a) / float64(max(b, 1)) }

// traceEvent is a complete event of Chrome's trace event format: times in µs.
type traceEvent struct {
	Name  string      `json:"name"`
	Cat   string      `json:"cat"`
	Phase string      `json:"ph"`
	At    float64     `json:"ts"`
	Took  float64     `json:"dur"`
	PID   int         `json:"pid"`
	TID   int         `json:"tid"`
	Args  engine.Task `json:"args"`
}

// writeTrace writes the tasks of a run as trace events.
func writeTrace(name string, tasks []engine.Task) error {
	trace := struct {
		Events []traceEvent `json:"traceEvents"`
	}{[]traceEvent{}}
	for _, t := range tasks {
		trace.Events = append(trace.Events, traceEvent{
			Name: t.Kernel + " " + t.Ops, Cat: "task", Phase: "X", At: float64(t.Begin) / 1000, Took: float64(t.Took) / 1000, PID: 1, TID: 1, Args: t,
		})
	}
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("--trace: %w", err)
	}
	return errors.Join(json.NewEncoder(f).Encode(trace), f.Close())
}
