package remote

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/tally-network/tally/internal/fetch"
)

// fromAddress reads an address.
func (c *Cache) fromAddress(_ context.Context, net *fetch.Network, source string) (*found, error) {
	u, err := fetch.Parse(source)
	if err != nil {
		return nil, err
	}
	if err := fetch.CheckAddress(u); err != nil {
		return nil, err
	}
	p := &found{net: c.Addresses}
	if p.net == nil {
		p.net = net.Public()
	}
	file := location{Expected: fetch.Expected{Bytes: -1}, name: path.Base(u.Path)}
	if u.Fragment != "" {
		if file.SHA256, err = digestOf(u.Fragment); err != nil {
			return nil, err
		}
		p.pinned = source
	}
	if u.User != nil {
		return nil, errors.New("the address holds a password, which all who see the order would know: take it out")
	}
	if !isName(file.name) {
		return nil, fmt.Errorf("its path ends in %.80q, which is no name of a file", file.name)
	}
	u.Fragment = ""
	file.url = u.String()
	if p.key, p.named = file.url, file.url; p.pinned != "" {
		p.key += "#" + file.SHA256 // another digest is another file
	}
	p.files = []location{file}
	return p, nil
}

const digestMark = "#sha256="

// digestOf reads what stands behind the # of a source.
func digestOf(fragment string) (string, error) {
	sum, ok := strings.CutPrefix("#"+fragment, digestMark)
	if sum = strings.ToLower(sum); !ok || !fetch.IsSHA256(sum) {
		return "", fmt.Errorf("behind # stands %.80q: write sha256= and 64 hexadecimal digits, or nothing", fragment)
	}
	return sum, nil
}
