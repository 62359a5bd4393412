package fetch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// What repositories of a hub hold.
const (
	Models   = "models"
	Datasets = "datasets"
)

// Repository is a repository of a hub, at one commit.
type Repository struct {
	Commit string
	Files  []Offered
	at     string // its address
}

// Offered is a file that somebody offers.
type Offered struct {
	Expected
	Name string // with slashes
}

var commitForm = regexp.MustCompile(`^[0-9a-f]{40,64}$`)

// Repository asks the hub for a repository's newest commit, or for that of a revision.
func (n *Network) Repository(ctx context.Context, of, name, revision string) (*Repository, error) {
	address := n.Hub + "/api/" + of + "/" + name
	if revision != "" {
		address += "/revision/" + url.PathEscape(revision)
	}
	got, err := n.Read(ctx, address+"?blobs=true", "application/json")
	if err != nil {
		return nil, err
	}
	r, err := ReadRepository(got.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", RedactText(address), err)
	}
	if r.at = n.Hub + "/" + name; of != Models {
		r.at = n.Hub + "/" + of + "/" + name
	}
	return r, nil
}

// ReadRepository reads what the hub's API says of a repository. It has no addresses.
func ReadRepository(text []byte) (*Repository, error) {
	var l struct {
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
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, err
	}
	r := &Repository{Commit: l.Commit}
	if !commitForm.MatchString(l.Commit) {
		return nil, fmt.Errorf("sha is %.80q, and should be a commit", l.Commit)
	}
	for _, s := range l.Files {
		f := Offered{Expected{Bytes: -1, Blob: s.Blob}, s.Name}
		if s.Bytes != nil {
			f.Bytes = *s.Bytes
		}
		if s.LFS != nil { // the blob is of what points to the file
			f.Expected = Expected{Bytes: s.LFS.Bytes, SHA256: strings.ToLower(s.LFS.SHA256)}
		}
		if f.Bytes < -1 || f.SHA256 != "" && !IsSHA256(f.SHA256) || len(f.Blob) != 40 && f.Blob != "" {
			return nil, fmt.Errorf("size or digest of %.80q is none", s.Name)
		}
		r.Files = append(r.Files, f)
	}
	return r, nil
}

// URL returns the address of a file.
func (r *Repository) URL(file string) string {
	var parts []string
	for part := range strings.SplitSeq(file, "/") {
		parts = append(parts, url.PathEscape(part))
	}
	return r.at + "/resolve/" + r.Commit + "/" + strings.Join(parts, "/")
}
