package bench

import (
	"context"
	"errors"
	"os"

	"github.com/tally-network/tally/bench/formats"
)

// formatRows measures the formats by files in the folder that is given, or in one that lasts as long.
func formatRows(ctx context.Context, o Options) (rows []Row, err error) {
	dir := o.Models
	if dir == "" {
		if dir, err = os.MkdirTemp("", "tally-formats"); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	all, err := formats.Measure(ctx, dir, o.Only, o.Tell)
	if err == nil && len(all) == 0 {
		err = errors.New("nothing is measured: give --only shard, tokens, csv, parquet, safetensors, import or digits, whose files bench/peers/digits.py writes")
	}
	for _, f := range all {
		r := row(f.Name, f.Unit, f.Value)
		switch {
		case f.Most > 0:
			r = r.atMost(f.Most)
		case f.Least != 0:
			r = r.atLeast(f.Least)
		}
		rows = append(rows, r)
	}
	return rows, err
}
