package remote

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/tally-network/tally/format/source"
	"github.com/tally-network/tally/internal/fetch"
)

const hubScheme = "hf:"

var hubForm = regexp.MustCompile(`^hf:((?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*)(?::([^@]+))?(?:@([A-Za-z0-9][\w./-]*))?$`)

// fromHub finds the files of a dataset.
func (c *Cache) fromHub(ctx context.Context, net *fetch.Network, from string) (*found, error) {
	m := hubForm.FindStringSubmatch(from)
	if m == nil || strings.Contains(from, "..") {
		return nil, fmt.Errorf("%.80q is no dataset: write hf:OWNER/NAME, hf:OWNER/NAME:FILE or hf:OWNER/NAME:FILE@REVISION", from)
	}
	if !c.isTrusted(from) {
		net = net.Anonymous()
	}
	r, err := net.Repository(ctx, fetch.Datasets, m[1], m[3])
	if err != nil {
		return nil, err
	}
	offered := map[string]fetch.Expected{}
	var names []string
	for _, f := range r.Files {
		if _, twice := offered[f.Name]; twice {
			return nil, fmt.Errorf("it has two files %.80q: trust nothing of this source", f.Name)
		}
		offered[f.Name] = f.Expected
		names = append(names, f.Name)
	}
	if names, err = source.Select(names, m[2]); err != nil {
		return nil, err
	}
	p := &found{net: net, pinned: hubScheme + m[1]}
	for i, name := range names {
		base := path.Base(name)
		if !isName(base) {
			return nil, fmt.Errorf("its file %.80q has no name of a file on every system", name)
		}
		if len(names) > 1 { // files of several folders may share a name
			base = shardName(i, base)
		}
		p.files = append(p.files, location{Expected: offered[name], url: r.URL(name), name: base})
		p.key += r.URL(name) + "\n"
	}
	switch {
	case len(names) == 1:
		p.key = r.URL(names[0])
		p.pinned += ":" + names[0]
	case m[2] != "":
		p.pinned += ":" + m[2]
	}
	p.pinned += "@" + r.Commit
	return p, nil
}
