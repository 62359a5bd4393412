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
	client     *http.Client
	index, hub string        // without a slash at the end
	token      string        // for the hub, and for nobody else
	tries      int           // of a download that brings nothing more
	pause      time.Duration // before the second try
	patience   time.Duration // with a server that sends nothing
}

func newNetwork(env func(string) string) *network {
	return &network{
		client: &http.Client{CheckRedirect: checkRedirect},
		index:  strings.TrimRight(cmp.Or(env("PIP_INDEX_URL"), defaultIndex), "/"),
		hub:    strings.TrimRight(cmp.Or(env("HF_ENDPOINT"), defaultHub), "/"),
		token:  env("HF_TOKEN"), tries: 4, pause: time.Second, patience: time.Minute,
	}
}

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

// checkRedirect follows no server of elsewhere to this machine, where others trust whoever calls.
func checkRedirect(r *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	if err := checkAddress(r.URL); err != nil {
		return fmt.Errorf("redirect: %w", err)
	}
	if isLoopback(r.URL) && !isLoopback(via[len(via)-1].URL) {
		return fmt.Errorf("a redirect to this machine, %.80q, is not followed", r.URL.Redacted())
	}
	return nil
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

// ask sends a request. Any answer but those of codes is an error.
func (n *network) ask(ctx context.Context, method, address string, header http.Header, codes ...int) (*http.Response, error) {
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
	answer, err := n.client.Do(r)
	if err != nil {
		return nil, err
	}
	for _, code := range codes {
		if answer.StatusCode == code {
			return answer, nil
		}
	}
	return nil, errors.Join(&statusError{answer.StatusCode, answer.Request.URL.Redacted()}, answer.Body.Close())
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
