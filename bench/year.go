package bench

import (
	"context"
	"os"
	"time"
)

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
	c, err := newTown(dir)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var state, disk []float64 // bytes after each week
	var bytes int
	for week := range yearWeeks {
		if _, err := c.settle(ctx, yearOrders, 1); err != nil {
			return nil, err
		}
		bytes += c.bytes
		for slept := time.Duration(0); slept < townRetention; slept += maxPause {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if _, err := c.Make(maxPause); err != nil {
				return nil, err
			}
		}
		kept, err := c.size()
		if err != nil {
			return nil, err
		}
		files, err := onDisk(dir)
		if err != nil {
			return nil, err
		}
		state, disk = append(state, float64(kept)), append(disk, float64(files))
		if week%13 == 12 {
			o.Tell("week %d: %d orders, %.1f MB of keys and values", week+1, c.posted, float64(kept)/1e6)
		}
	}
	const month, last = 4, yearWeeks - 1
	return []Row{
		row("orders settled in a year whose weeks are as long as a settled lease is kept", "", float64(c.posted)),
		row("keys and values of its state after four weeks", "MB", state[month-1]/1e6),
		row("after the year", "MB", state[last]/1e6),
		row("for good, of an order", "B", (state[last]-state[month-1])/((yearWeeks-month)*yearOrders)),
		row("files of its state, with the versions that are kept", "MB", disk[last]/1e6),
		row("transactions of the year", "MB", float64(bytes)/1e6),
	}, nil
}
