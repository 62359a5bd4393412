package module

import "github.com/cosmos/cosmos-sdk/types/query"

// Newest returns the page that somebody asked for of a list that has the newest entries first.
func Newest(asked *query.PageRequest) *query.PageRequest {
	page := query.PageRequest{Reverse: true}
	if asked != nil {
		page.Key, page.Offset, page.Limit = asked.Key, asked.Offset, asked.Limit
	}
	return &page
}
