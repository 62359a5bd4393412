package bench

import "context"

func others(ctx context.Context, tell func(string, ...any)) ([]Row, error) { return nil, nil }
