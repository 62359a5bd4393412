// Package fetch brings files from other machines: whole, checked and resumable.
//
// Make a [Network] by [New]. [Network.Download] fetches a file and goes on where an earlier try ended; [Network.Repository] lists the
// files of a repository of a hub; [Network.Read] fetches a short page.
//
// Invariants: only https is spoken, but to this machine. Hosts that a page or a redirect names are public ones; hosts inside the user's own network
// are reached only if the user has named them. A token goes to the hub alone. What a source promises of a file, its size and its digest, is
// checked; no more bytes are taken than there is room for.
//
// Source: the hub's HTTP API, as of 2026; RFC 9110 for ranges; RFC 6890 for addresses.
package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	defaultIndex = "https://pypi.org/simple"
	defaultHub   = "https://huggingface.co"

	MaxPage      = 32 << 20 // bytes of a page of an index, or of a list of a repository's files
	maxRedirects = 10
)

// Network is how files come from other machines.
type Network struct {
	Named      *http.Client // for hosts that the user has named, wherever they are
	found      *http.Client // for hosts that a page or a redirect has named: public ones
	hosts      []string     // with ports, that the user has named
	Index, Hub string       // without a slash at the end
	token      string       // for the hub, and for nobody else
	sign       func(*http.Request) error
	signed     string        // the host whose requests are signed
	Tries      int           // of a download that brings no MinBytes more
	Pause      time.Duration // before the second try

	// A server that sends less than MinBytes in an IdleTimeout is given up: 17 KiB/s. Who asks may hold a lock
	// meanwhile. A modem of 1998 sends 7 KiB/s, a phone of 2003 (EDGE) 25.
	IdleTimeout time.Duration
	MinBytes    int64
}

// New returns the network of somebody with an environment: PIP_INDEX_URL, HF_ENDPOINT and HF_TOKEN.
func New(env func(string) string) *Network {
	n := &Network{
		Named: NewClient(cloneTransport()), found: NewClient(newPublicTransport()),
		Index: strings.TrimRight(cmp.Or(env("PIP_INDEX_URL"), defaultIndex), "/"),
		Hub:   strings.TrimRight(cmp.Or(env("HF_ENDPOINT"), defaultHub), "/"),
		token: env("HF_TOKEN"), Tries: 4, Pause: time.Second, IdleTimeout: time.Minute, MinBytes: 1 << 20,
	}
	return n.Naming(n.Index).Naming(n.Hub)
}

// Naming returns the network of somebody who has named an address as well.
func (n *Network) Naming(address string) *Network {
	out := *n
	if u, err := url.Parse(address); err == nil {
		out.hosts = append(slices.Clone(n.hosts), hostOf(u))
	}
	return &out
}

// Signing returns the network of somebody who has named an address as well, and signs requests to its host: those alone, not
// what they lead to.
func (n *Network) Signing(address string, sign func(*http.Request) error) *Network {
	out := n.Naming(address)
	if u, err := url.Parse(address); err == nil {
		out.sign, out.signed = sign, hostOf(u)
	}
	return out
}

// hostOf returns the host of an address, with its port.
func hostOf(u *url.URL) string {
	return net.JoinHostPort(strings.ToLower(u.Hostname()), cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]))
}

// isNamed reports whether the user has named the host of an address.
func (n *Network) isNamed(u *url.URL) bool { return slices.Contains(n.hosts, hostOf(u)) }

// isHub reports whether an address is the hub's.
func (n *Network) isHub(u *url.URL) bool {
	hub, err := url.Parse(n.Hub)
	return err == nil && hub.Host == u.Host && hub.Scheme == u.Scheme
}

// Public returns the network of somebody who has named nothing, and whom nobody knows: for addresses that strangers have written.
func (n *Network) Public() *Network {
	out := n.Anonymous()
	out.hosts = nil
	return out
}

// Anonymous returns the network of somebody whom nobody knows.
func (n *Network) Anonymous() *Network {
	out := *n
	out.token, out.sign, out.signed = "", nil, ""
	out.Hub, out.Index = WithoutUser(n.Hub), WithoutUser(n.Index)
	return &out
}

// WithoutUser returns an address without a name and a password.
func WithoutUser(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return address
	}
	u.User = nil
	return u.String()
}

// CheckAddress returns an error unless nobody on the way can change what an address gives.
func CheckAddress(u *url.URL) error {
	switch {
	case u.Host == "":
		return fmt.Errorf("%.80q names no host", Redact(u))
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u):
		return nil
	}
	return fmt.Errorf("%.80q is not fetched: write an address that begins with https://", Redact(u))
}

// Redact returns an address for messages, without what may let its reader in: name, password and query.
func Redact(u *url.URL) string {
	out := *u
	out.User, out.Fragment, out.RawFragment = nil, "", ""
	if out.ForceQuery = false; out.RawQuery != "" {
		out.RawQuery = "…"
	}
	return out.String()
}

// RedactText is [Redact] for what may be no address.
func RedactText(address string) string {
	bare, _, asks := strings.Cut(address, "?")
	if scheme, rest, ok := strings.Cut(bare, "://"); ok {
		host, path, slash := strings.Cut(rest, "/")
		if at := strings.LastIndexByte(host, '@'); at >= 0 {
			host = host[at+1:]
		}
		if bare = scheme + "://" + host; slash {
			bare += "/" + path
		}
	}
	if bare, _, _ = strings.Cut(bare, "#"); asks {
		bare += "?…"
	}
	return bare
}

// redactError returns the error of a request, without what its address may hold.
func redactError(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		u.URL = RedactText(u.URL)
		if strings.Contains(u.Err.Error(), "Location header") { // which it quotes
			u.Err = errors.New("the server leads to what is no address")
		}
	}
	return err
}

// Parse reads an address. Its error does not hold it whole.
func Parse(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%.80q is no address: percent signs, spaces or the port are not as they should be", RedactText(address))
	}
	return u, nil
}

func isLoopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// statusError is an answer that holds nothing.
type statusError struct {
	code int
	url  string
}

func (e *statusError) Error() string {
	hint := "try again later"
	switch e.code {
	case http.StatusNotFound, http.StatusGone:
		hint = "check the name"
	case http.StatusUnauthorized, http.StatusForbidden:
		hint = "check the name; for what is not public, set HF_TOKEN or AWS_ACCESS_KEY_ID, or put name and password into PIP_INDEX_URL"
	case http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		hint = "it names no other address; for a bucket, set AWS_REGION to its region"
	}
	return fmt.Sprintf("%s answers %d %s: %s", e.url, e.code, http.StatusText(e.code), hint)
}

// IsHidden reports whether an error is that there is nothing, or nothing for who asks.
func IsHidden(err error) bool {
	status := (*statusError)(nil)
	return errors.As(err, &status) && (status.code == http.StatusNotFound || status.code == http.StatusUnauthorized || status.code == http.StatusForbidden)
}

// Do sends a request, and follows redirects. Any answer but those of codes is an error.
func (n *Network) Do(ctx context.Context, method, address string, header http.Header, codes ...int) (*http.Response, error) {
	trusted := true // who asks, or the hub, has named the address
	for range maxRedirects {
		answer, err := n.doOnce(ctx, method, address, header, trusted)
		if err != nil {
			return nil, err
		}
		if slices.Contains(codes, answer.StatusCode) {
			return answer, nil
		}
		to, err := answer.Location()
		if answer.StatusCode/100 != 3 || err != nil {
			return nil, errors.Join(&statusError{answer.StatusCode, Redact(answer.Request.URL)}, answer.Body.Close())
		}
		if err := errors.Join(answer.Body.Close(), CheckAddress(to)); err != nil {
			return nil, fmt.Errorf("redirect: %w", err)
		}
		trusted = n.isHub(answer.Request.URL)
		address = to.String()
	}
	return nil, fmt.Errorf("more than %d redirects", maxRedirects)
}

// doOnce sends it by the client that the address is for.
func (n *Network) doOnce(ctx context.Context, method, address string, header http.Header, trusted bool) (*http.Response, error) {
	u, err := Parse(address)
	if err != nil {
		return nil, err
	}
	if err := CheckAddress(u); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, redactError(err)
	}
	r.Header = header.Clone()
	r.Header.Set("User-Agent", "tally")
	if trusted && n.token != "" && n.isHub(r.URL) {
		r.Header.Set("Authorization", "Bearer "+n.token)
	}
	if trusted && n.sign != nil && hostOf(r.URL) == n.signed {
		if err := n.sign(r); err != nil {
			return nil, err
		}
	}
	by := n.found
	if n.isNamed(r.URL) {
		by = n.Named
	}
	answer, err := by.Do(r)
	return answer, redactError(err)
}

// Page is a short answer.
type Page struct {
	Body []byte
	Kind string   // its media type, with parameters
	From *url.URL // behind all redirects
}

// Read fetches a short answer.
func (n *Network) Read(ctx context.Context, address, accept string) (*Page, error) {
	ctx, cancel := context.WithTimeout(ctx, n.IdleTimeout)
	defer cancel()
	answer, err := n.Do(ctx, http.MethodGet, address, http.Header{"Accept": {accept}}, http.StatusOK)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, MaxPage+1))
	if err = redactError(err); err == nil && len(body) > MaxPage {
		err = fmt.Errorf("%s gives more than %d bytes", Redact(answer.Request.URL), MaxPage)
	}
	return &Page{body, answer.Header.Get("Content-Type"), answer.Request.URL}, err
}
