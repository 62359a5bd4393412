package client

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cosmos/cosmos-sdk/types/query"
)

func TestPages(t *testing.T) {
	list := func(pages ...[]int) func(*query.PageRequest) ([]int, *query.PageResponse, error) {
		return func(p *query.PageRequest) ([]int, *query.PageResponse, error) {
			at := 0
			if len(p.Key) > 0 {
				at = int(p.Key[0])
			}
			if at == len(pages) {
				return nil, nil, errors.New("gone")
			}
			next := &query.PageResponse{}
			if at+1 < len(pages) || pages[at] == nil {
				next.NextKey = []byte{byte(at + 1)}
			}
			return pages[at], next, nil
		}
	}
	for name, x := range map[string]struct {
		ask  func(*query.PageRequest) ([]int, *query.PageResponse, error)
		want []int
		fail string
	}{
		"to the end":    {list([]int{1, 2}, []int{3}), []int{1, 2, 3}, ""},
		"to the most":   {list([]int{1, 2}, []int{3, 4, 5}), []int{1, 2, 3, 4}, ""},
		"nothing":       {list([]int{}), nil, ""},
		"without end":   {list([]int{1}, nil), nil, "without any"},
		"a page is bad": {list(), nil, "ask for the numbers: gone"},
	} {
		got, err := Pages("numbers", 4, x.ask)
		if !slices.Equal(got, x.want) || (err == nil) != (x.fail == "") || err != nil && !strings.Contains(err.Error(), x.fail) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
