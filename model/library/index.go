package library

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/tally-network/tally/internal/fetch"
)

// acceptIndex asks for an index's page in the newer form, and takes the older.
const acceptIndex = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"

// release is a file of a project.
type release struct {
	fetch.Expected
	name    string
	url     string
	version version
	yanked  bool
}

var separators = regexp.MustCompile(`[-_.]+`)

// projectName returns a project's name as indices compare it.
func projectName(name string) string { return strings.ToLower(separators.ReplaceAllString(name, "-")) }

// readIndex returns what archives a page of an index names for a project.
func readIndex(p *fetch.Page, project string) (all []release, err error) {
	kind, _, err := mime.ParseMediaType(p.Kind)
	if err != nil {
		return nil, fmt.Errorf("the index answers with a %.80q: %w", p.Kind, err)
	}
	switch kind {
	case "application/vnd.pypi.simple.v1+json":
		all, err = readIndexJSON(p)
	case "application/vnd.pypi.simple.v1+html", "text/html":
		all, err = readIndexHTML(p)
	default:
		return nil, fmt.Errorf("the index answers with a %.80q: want PEP 503 or 691", kind)
	}
	if err != nil {
		return nil, fmt.Errorf("read the index: %w", err)
	}
	var read []release
	for _, r := range all {
		if r.read(project) {
			read = append(read, r)
		}
	}
	return read, nil
}

func readIndexJSON(p *fetch.Page) ([]release, error) {
	var listed struct {
		Meta struct {
			Version string `json:"api-version"`
		} `json:"meta"`
		Files []struct {
			Name   string            `json:"filename"`
			URL    string            `json:"url"`
			Hashes map[string]string `json:"hashes"`
			Bytes  *int64            `json:"size"`
			Yanked any               `json:"yanked"`
		} `json:"files"`
	}
	if err := json.Unmarshal(p.Body, &listed); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(listed.Meta.Version, "1.") {
		return nil, fmt.Errorf("its api-version is %.20q, and only 1 is read", listed.Meta.Version)
	}
	var all []release
	for _, f := range listed.Files {
		r := release{Expected: fetch.Expected{Bytes: -1, SHA256: strings.ToLower(f.Hashes["sha256"])}, name: f.Name}
		if f.Bytes != nil {
			r.Bytes = *f.Bytes
		}
		r.yanked = f.Yanked != nil && f.Yanked != false
		u, err := p.From.Parse(f.URL)
		if err != nil {
			return nil, err
		}
		r.url = u.String()
		all = append(all, r)
	}
	return all, nil
}

func readIndexHTML(p *fetch.Page) (all []release, err error) {
	base := p.From
	z := html.NewTokenizer(bytes.NewReader(p.Body))
	z.SetMaxBuf(fetch.MaxPage)
	for {
		switch z.Next() {
		case html.ErrorToken:
			return all, nil // the page has ended, as pages do
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			href, yanked := "", false
			for _, a := range t.Attr {
				switch a.Key {
				case "href":
					href = a.Val
				case "data-yanked":
					yanked = true
				}
			}
			switch {
			case href == "":
			case t.Data == "base":
				if base, err = p.From.Parse(href); err != nil {
					return nil, err
				}
			case t.Data == "a":
				r, err := readAnchor(base, href)
				if err != nil {
					return nil, err
				}
				r.yanked = yanked
				all = append(all, r)
			}
		}
	}
}

func readAnchor(base *url.URL, href string) (release, error) {
	u, err := base.Parse(href)
	if err != nil {
		return release{}, err
	}
	r := release{Expected: fetch.Expected{Bytes: -1}, name: path.Base(u.Path)}
	if sum, ok := strings.CutPrefix(u.Fragment, "sha256="); ok {
		r.SHA256 = strings.ToLower(sum)
	}
	u.Fragment = ""
	r.url = u.String()
	return r, nil
}

// read reads an archive's name, and reports whether it is one of the project's.
func (r *release) read(project string) bool {
	if r.SHA256 != "" && !fetch.IsSHA256(r.SHA256) || r.Bytes < -1 || len(r.name) > 255 {
		return false
	}
	name, number := "", ""
	if stem, ok := strings.CutSuffix(r.name, ".whl"); ok {
		parts := strings.Split(stem, "-")
		if len(parts) != 5 && len(parts) != 6 {
			return false
		}
		name, number = parts[0], parts[1]
	} else {
		stem := strings.TrimSuffix(strings.TrimSuffix(r.name, ".zip"), ".tar.gz")
		cut := strings.LastIndexByte(stem, '-')
		if stem == r.name || cut < 0 {
			return false
		}
		name, number = stem[:cut], stem[cut+1:]
	}
	var err error
	r.version, err = parseVersion(number)
	return err == nil && projectName(name) == project
}

// order is which archive of a release is taken first: a wheel for every machine, another wheel, a source.
func (r *release) order() int {
	switch {
	case strings.HasSuffix(r.name, "-any.whl"):
		return 2
	case strings.HasSuffix(r.name, ".whl"):
		return 1
	}
	return 0
}

// newest returns the archive of a version, or of the newest final one.
func newest(all []release, wanted string) (*release, error) {
	if len(all) == 0 {
		return nil, errors.New("the index has no archive of this project: check the name")
	}
	var exact version
	if wanted != "" {
		var err error
		if exact, err = parseVersion(wanted); err != nil {
			return nil, err
		}
	}
	var best *release
	for i := range all {
		r := &all[i]
		if wanted != "" && r.version.compare(exact) != 0 || wanted == "" && (r.yanked || !r.version.final()) {
			continue
		}
		if best == nil {
			best = r
		} else if c := r.version.compare(best.version); c > 0 || c == 0 && r.order() > best.order() {
			best = r
		}
	}
	if best == nil {
		var names []string
		for _, r := range slices.Backward(all) {
			if !slices.Contains(names, r.version.text) {
				names = append(names, r.version.text)
			}
		}
		return nil, fmt.Errorf("the index has no such version: there are %s; name one, as in pypi:NAME==%s", some(names), names[0])
	}
	return best, nil
}
