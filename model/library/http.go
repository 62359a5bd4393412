package library

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

	maxPage      = 32 << 20 // bytes of a page of an index, or of a list of a repository's files
	maxRedirects = 10
)

// network is how models come from other machines.
type network struct {
	named      *http.Client  // for hosts that the user has named, wherever they are
	found      *http.Client  // for hosts that a page or a redirect has named: public ones
	hosts      []string      // with ports, that the user has named
	index, hub string        // without a slash at the end
	token      string        // for the hub, and for nobody else
	tries      int           // of a download that brings nothing more
	pause      time.Duration // before the second try
	patience   time.Duration // with a server that sends nothing
}

func newNetwork(env func(string) string) *network {
	n := &network{
		named: newClient(cloneTransport()), found: newClient(newPublicTransport()),
		index: strings.TrimRight(cmp.Or(env("PIP_INDEX_URL"), defaultIndex), "/"),
		hub:   strings.TrimRight(cmp.Or(env("HF_ENDPOINT"), defaultHub), "/"),
		token: env("HF_TOKEN"), tries: 4, pause: time.Second, patience: time.Minute,
	}
	return n.naming(n.index).naming(n.hub)
}

// naming returns the network of somebody who has named an address as well.
func (n *network) naming(address string) *network {
	out := *n
	if u, err := url.Parse(address); err == nil {
		out.hosts = append(slices.Clone(n.hosts), hostOf(u))
	}
	return &out
}

// hostOf returns the host of an address, with its port.
func hostOf(u *url.URL) string {
	return net.JoinHostPort(strings.ToLower(u.Hostname()), cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]))
}

// isNamed reports whether the user has named the host of an address.
func (n *network) isNamed(u *url.URL) bool { return slices.Contains(n.hosts, hostOf(u)) }

// checkAddress returns an error unless nobody on the way can change what an address gives.
func checkAddress(u *url.URL) error {
	switch {
	case u.Host == "":
		return fmt.Errorf("%.80q names no host", u.Redacted())
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u):
		return nil
	}
	return fmt.Errorf("%.80q is not fetched: write an address that begins with https://", u.Redacted())
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
		hint = "check the name; for what is not public, set HF_TOKEN, or put name and password into PIP_INDEX_URL"
	}
	return fmt.Sprintf("%s answers %d %s: %s", e.url, e.code, http.StatusText(e.code), hint)
}

// ask sends a request, and follows redirects. Any answer but those of codes is an error.
func (n *network) ask(ctx context.Context, method, address string, header http.Header, codes ...int) (*http.Response, error) {
	for range maxRedirects {
		answer, err := n.askOnce(ctx, method, address, header)
		if err != nil {
			return nil, err
		}
		if slices.Contains(codes, answer.StatusCode) {
			return answer, nil
		}
		to, err := answer.Location()
		if answer.StatusCode/100 != 3 || err != nil {
			return nil, errors.Join(&statusError{answer.StatusCode, answer.Request.URL.Redacted()}, answer.Body.Close())
		}
		if err := errors.Join(answer.Body.Close(), checkAddress(to)); err != nil {
			return nil, fmt.Errorf("redirect: %w", err)
		}
		address = to.String()
	}
	return nil, fmt.Errorf("more than %d redirects", maxRedirects)
}

// askOnce asks by the client that the address is for.
func (n *network) askOnce(ctx context.Context, method, address string, header http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	if err := checkAddress(r.URL); err != nil {
		return nil, err
	}
	r.Header = header.Clone()
	r.Header.Set("User-Agent", "tally")
	if hub, err := url.Parse(n.hub); err == nil && n.token != "" && hub.Host == r.URL.Host && hub.Scheme == r.URL.Scheme {
		r.Header.Set("Authorization", "Bearer "+n.token)
	}
	if n.isNamed(r.URL) {
		return n.named.Do(r)
	}
	return n.found.Do(r)
}

// page is a short answer.
type page struct {
	body []byte
	kind string   // its media type, with parameters
	from *url.URL // behind all redirects
}

// read fetches a short answer.
func (n *network) read(ctx context.Context, address, accept string) (*page, error) {
	ctx, cancel := context.WithTimeout(ctx, n.patience)
	defer cancel()
	answer, err := n.ask(ctx, http.MethodGet, address, http.Header{"Accept": {accept}}, http.StatusOK)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxPage+1))
	if err == nil && len(body) > maxPage {
		err = fmt.Errorf("%s gives more than %d bytes", answer.Request.URL.Redacted(), maxPage)
	}
	return &page{body, answer.Header.Get("Content-Type"), answer.Request.URL}, err
}
