package library

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// version is one of PEP 440, so far as it orders releases.
type version struct {
	text                 string // normalised, without the local part
	epoch                int
	release              []int // without zeros at its end
	pre, post, dev       int
	isPre, isPost, isDev bool
	letter, local        string
}

var versionForm = regexp.MustCompile(`^v?(?:(\d{1,9})!)?(\d{1,9}(?:\.\d{1,9}){0,20})` +
	`(?:[-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?(\d{0,9}))?` +
	`(?:-(\d{1,9})|[-_.]?(post|rev|r)[-_.]?(\d{0,9}))?` +
	`(?:[-_.]?(dev)[-_.]?(\d{0,9}))?(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?$`)

// letters are the phases before a release, as they are written and as they are ordered.
var letters = map[string]string{"a": "a", "alpha": "a", "b": "b", "beta": "b", "c": "rc", "rc": "rc", "pre": "rc", "preview": "rc"}

func parseVersion(text string) (version, error) {
	m := versionForm.FindStringSubmatch(strings.ToLower(strings.TrimSpace(text)))
	if m == nil || len(text) > 200 {
		return version{}, fmt.Errorf("%.40q is no version: write one such as 1.2.3", text)
	}
	v := version{
		epoch: number(m[1]), isPre: m[3] != "", letter: letters[m[3]], pre: number(m[4]),
		isPost: m[5] != "" || m[6] != "", post: number(m[5] + m[7]), isDev: m[8] != "", dev: number(m[9]), local: m[10],
	}
	for part := range strings.SplitSeq(m[2], ".") {
		v.release = append(v.release, number(part))
	}
	for len(v.release) > 1 && v.release[len(v.release)-1] == 0 {
		v.release = v.release[:len(v.release)-1]
	}
	v.text = m[0]
	return v, nil
}

// number reads at most nine digits; none are zero.
func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

// final reports whether a version is no preview of another.
func (v version) final() bool { return !v.isPre && !v.isDev }

// compare orders versions, the older first: previews before what they preview, amendments after it.
func (v version) compare(w version) int {
	return cmp.Or(
		cmp.Compare(v.epoch, w.epoch), slices.Compare(v.release, w.release), cmp.Compare(v.phase(), w.phase()), cmp.Compare(v.letter, w.letter),
		cmp.Compare(v.pre, w.pre), cmp.Compare(rank(v.isPost), rank(w.isPost)), cmp.Compare(v.post, w.post),
		cmp.Compare(rank(!v.isDev), rank(!w.isDev)), cmp.Compare(v.dev, w.dev), strings.Compare(v.local, w.local),
	)
}

// phase is 0 for what only a development release has, 1 for previews, 2 for releases and their amendments.
func (v version) phase() int {
	switch {
	case v.isPre:
		return 1
	case v.isDev && !v.isPost:
		return 0
	}
	return 2
}

func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}
