package client

import (
	"fmt"

	"github.com/cosmos/cosmos-sdk/types/query"
)

// perPage is how many members of a list are asked for at a time.
const perPage = 1000

// Pages reads a list that a node gives in pages, to its end or to the most members. ask asks for one page; what names
// the members in errors.
func Pages[T any](what string, most int, ask func(*query.PageRequest) ([]T, *query.PageResponse, error)) (out []T, err error) {
	for page := (&query.PageRequest{Limit: perPage}); ; {
		some, next, err := ask(page)
		if err != nil {
			return nil, fmt.Errorf("ask for the %s: %w", what, err)
		}
		switch out = append(out, some...); {
		case len(out) >= most:
			return out[:most], nil
		case next == nil || len(next.NextKey) == 0:
			return out, nil
		case len(some) == 0: // it might go on for ever
			return nil, fmt.Errorf("ask for the %s: the node gives pages without any: name another", what)
		}
		page = &query.PageRequest{Limit: perPage, Key: next.NextKey}
	}
}
