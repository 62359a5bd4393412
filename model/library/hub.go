package library

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

var commitForm = regexp.MustCompile(`^[0-9a-f]{40,64}$`)

// hub is a repository of a hub, at one commit.
type hub struct {
	p      *pull
	commit string
	files  []offered
}

// listed is what the hub's API says of a repository.
type listed struct {
	Commit string `json:"sha"`
	Files  []struct {
		Name  string `json:"rfilename"`
		Bytes *int64 `json:"size"`
		Blob  string `json:"blobId"`
		LFS   *struct {
			SHA256 string `json:"sha256"`
			Bytes  int64  `json:"size"`
		} `json:"lfs"`
	} `json:"siblings"`
}

func openHub(ctx context.Context, p *pull) (*hub, error) {
	address := p.net.hub + "/api/models/" + p.source.base
	if p.source.version != "" {
		address += "/revision/" + url.PathEscape(p.source.version)
	}
	got, err := p.net.read(ctx, address+"?blobs=true", "application/json")
	if err != nil {
		return nil, err
	}
	h := &hub{p: p}
	if h.commit, h.files, err = readListed(got.body); err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return h, nil
}

func readListed(text []byte) (commit string, files []offered, err error) {
	var l listed
	if err := json.Unmarshal(text, &l); err != nil {
		return "", nil, err
	}
	if !commitForm.MatchString(l.Commit) {
		return "", nil, fmt.Errorf("sha is %.80q, and should be a commit", l.Commit)
	}
	for _, s := range l.Files {
		f := offered{expected{bytes: -1, blob: s.Blob}, s.Name}
		if s.Bytes != nil {
			f.bytes = *s.Bytes
		}
		if s.LFS != nil { // the blob is of what points to the file
			f.expected = expected{bytes: s.LFS.Bytes, sha256: strings.ToLower(s.LFS.SHA256)}
		}
		if f.bytes < -1 || f.sha256 != "" && !isSHA256(f.sha256) || len(f.blob) != 40 && f.blob != "" {
			return "", nil, fmt.Errorf("size or digest of %.80q is none", s.Name)
		}
		files = append(files, f)
	}
	return l.Commit, files, nil
}

func (h *hub) release() string                         { return h.commit }
func (h *hub) list(context.Context) ([]offered, error) { return h.files, nil }
func (h *hub) close() error                            { return nil }

func (h *hub) take(ctx context.Context, f offered, to string) (string, error) {
	var parts []string
	for part := range strings.SplitSeq(f.name, "/") {
		parts = append(parts, url.PathEscape(part))
	}
	address := h.p.net.hub + "/" + h.p.source.base + "/resolve/" + h.commit + "/" + strings.Join(parts, "/")
	return h.p.download(ctx, wanted{expected: f.expected, url: address, to: to}, f.name)
}
