package bench

import (
	"context"
	"os"

	"github.com/tally-network/tally/bench/solo"
	"github.com/tally-network/tally/bench/town"
)

// The orders whose settlement is measured.
const (
	settledOrders = 400 // that are under way together
	settledUnits  = 64  // of an order with many
)

// settledRows measures how many orders a chain settles, how many units it takes receipts of, and what of
// them stays in its state.
func settledRows(ctx context.Context, o Options) (rows []Row, err error) {
	dir, err := os.MkdirTemp("", "tally-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	t, err := town.New(dir)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	o.Tell("settling %d orders of one unit", settledOrders)
	one, err := t.Settle(ctx, settledOrders, 1)
	if err != nil {
		return nil, err
	}
	kept, err := t.Size()
	if err != nil {
		return nil, err
	}
	if err := t.Pass(ctx, 2*town.Retention); err != nil {
		return nil, err
	}
	left, err := t.Size()
	if err != nil {
		return nil, err
	}
	const many = settledOrders/settledUnits + 1
	o.Tell("settling %d orders of %d units", many, settledUnits)
	units, err := t.Settle(ctx, many, settledUnits)
	if err != nil {
		return nil, err
	}
	return []Row{
		row("orders of one unit, from post to settlement, signatures checked, committed to disk", "/s", settledOrders/one.Wall.Seconds()).atLeast(50),
		row("CPU of the node for one", "ms", 1000*one.CPU.Seconds()/settledOrders),
		row("messages of such an order", "", float64(one.Messages)/settledOrders),
		row("bytes of its transactions", "B", float64(one.Bytes)/settledOrders),
		row("units, their messages 16 in a transaction", "/s", many*settledUnits/units.Wall.Seconds()).atLeast(200),
		row("CPU of the node for one", "ms", 1000*units.CPU.Seconds()/(many*settledUnits)),
		row("state of a settled order of one unit: keys and values", "B", float64(kept-left)/settledOrders),
	}, nil
}

// sessions are those whose beginning and end are measured.
const sessions = 2048

// sessionRows measures how many sessions with a language model a chain opens and settles.
func sessionRows(ctx context.Context, o Options) ([]Row, error) {
	dir, err := os.MkdirTemp("", "tally-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	t, err := town.New(dir)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	o.Tell("opening and settling %d sessions", sessions)
	spent, err := t.Sessions(ctx, sessions)
	if err != nil {
		return nil, err
	}
	return []Row{
		row("sessions, each opened in a transaction of its own and settled, signatures checked, committed to disk", "/s", sessions/spent.Wall.Seconds()).atLeast(100),
		row("CPU of the node for one", "ms", 1000*spent.CPU.Seconds()/sessions),
		row("bytes of its transactions", "B", float64(spent.Bytes)/sessions),
	}, nil
}

// The year that is measured: a week of it is as long as a settled lease is kept.
const (
	yearWeeks  = 52
	yearOrders = 140 // a week
)

// yearRows lets a town post, settle and prune orders for a year of weeks that are as long as its retention.
func yearRows(ctx context.Context, o Options) ([]Row, error) {
	dir, err := os.MkdirTemp("", "tally-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	t, err := town.New(dir)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	var state, disk []float64 // bytes after each week
	var bytes int
	for week := range yearWeeks {
		spent, err := t.Settle(ctx, yearOrders, 1)
		if err == nil {
			err = t.Pass(ctx, town.Retention)
		}
		if err != nil {
			return nil, err
		}
		kept, err := t.Size()
		if err != nil {
			return nil, err
		}
		files, err := solo.OnDisk(dir)
		if err != nil {
			return nil, err
		}
		bytes += spent.Bytes
		state, disk = append(state, float64(kept)), append(disk, float64(files))
		if week%13 == 12 {
			o.Tell("week %d: %d orders, %.1f MB of keys and values", week+1, (week+1)*yearOrders, float64(kept)/1e6)
		}
	}
	const month, last = 4, yearWeeks - 1
	return []Row{
		row("orders settled in a year whose weeks are as long as a settled lease is kept", "", yearWeeks*yearOrders),
		row("keys and values of its state after four weeks", "MB", state[month-1]/1e6),
		row("after the year", "MB", state[last]/1e6),
		row("for good, of an order", "B", (state[last]-state[month-1])/((yearWeeks-month)*yearOrders)),
		row("files of its state, with the versions that are kept", "MB", disk[last]/1e6),
		row("transactions of the year", "MB", float64(bytes)/1e6),
	}, nil
}
