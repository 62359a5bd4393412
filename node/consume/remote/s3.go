package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/tally-network/tally/format/source"
	"github.com/tally-network/tally/internal/fetch"
)

const s3Scheme = "s3://"

// emptyHash is the SHA-256 of a request without a body.
const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// maxListings bounds the pages of a list of a bucket's files, of which each names a thousand at most.
const maxListings = 64

var (
	bucketForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	regionForm = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)
)

// bucket is where the files of a bucket are.
type bucket struct {
	name string
	root string // an address without a slash at the end, which names the bucket
	net  *fetch.Network
}

// openBucket finds a bucket by the environment. Requests are signed if the user has said whose they are, and trusts the source with it.
func (c *Cache) openBucket(net *fetch.Network, name string, trusted bool) (*bucket, error) {
	if !bucketForm.MatchString(name) {
		return nil, fmt.Errorf("%.80q is no bucket: write s3://BUCKET/KEY", name)
	}
	region := cmp.Or(c.env("AWS_REGION"), c.env("AWS_DEFAULT_REGION"), "us-east-1")
	if !regionForm.MatchString(region) {
		return nil, fmt.Errorf("AWS_REGION is %.80q, and no region", region)
	}
	b := &bucket{name: name}
	endpoint := strings.TrimRight(cmp.Or(c.env("AWS_ENDPOINT_URL_S3"), c.env("AWS_ENDPOINT_URL")), "/")
	if !trusted {
		endpoint = fetch.WithoutUser(endpoint)
	}
	switch {
	case endpoint != "":
		b.root = endpoint + "/" + name
	case strings.Contains(name, "."): // which no certificate covers as a host
		b.root = "https://s3." + region + ".amazonaws.com/" + name
	default:
		b.root = "https://" + name + ".s3." + region + ".amazonaws.com"
	}
	b.net = net.Anonymous()
	if endpoint != "" {
		b.net = b.net.Naming(endpoint)
	}
	id, secret := c.env("AWS_ACCESS_KEY_ID"), c.env("AWS_SECRET_ACCESS_KEY")
	if (id == "") != (secret == "") {
		return nil, errors.New("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: set both, or none")
	}
	if id != "" && trusted {
		by := aws.Credentials{AccessKeyID: id, SecretAccessKey: secret, SessionToken: c.env("AWS_SESSION_TOKEN")}
		sign := signer(by, region, time.Now)
		b.net = b.net.Signing(b.root, sign)
	}
	return b, nil
}

// signer returns what signs requests without a body by AWS's Signature Version 4.
func signer(by aws.Credentials, region string, now func() time.Time) func(*http.Request) error {
	s := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }) // S3 escapes a path once
	return func(r *http.Request) error {
		r.Header.Set("X-Amz-Content-Sha256", emptyHash)
		return s.SignHTTP(r.Context(), by, r, emptyHash, "s3", region, now())
	}
}

// fromS3 finds the files of a bucket.
func (c *Cache) fromS3(ctx context.Context, net *fetch.Network, from string) (*found, error) {
	name, key, _ := strings.Cut(strings.TrimPrefix(from, s3Scheme), "/")
	b, err := c.openBucket(net, name, c.isTrusted(from))
	if err != nil {
		return nil, err
	}
	p := &found{net: b.net, key: b.root, named: from}
	if !strings.HasSuffix(key, "/") && key != "" && !source.HasGlob(key) {
		file := location{Expected: fetch.Expected{Bytes: -1}}
		if i := strings.LastIndex(key, digestMark); i >= 0 { // a key may hold a #, too
			if file.SHA256, err = digestOf(key[i+1:]); err != nil {
				return nil, err
			}
			key, p.pinned = key[:i], from
		}
		file.url, file.name = b.url(key), path.Base(key)
		if !isName(file.name) {
			return nil, fmt.Errorf("its key ends in %.80q, which is no name of a file", file.name)
		}
		p.files, p.key = []location{file}, file.url+"#"+file.SHA256
		return p, nil
	}
	all, err := b.list(ctx, key)
	if err != nil {
		return nil, err
	}
	var names []string
	sizes := map[string]int64{}
	for _, o := range all {
		if _, twice := sizes[o.Key]; twice {
			return nil, fmt.Errorf("bucket %s lists %.80q twice", b.name, o.Key)
		}
		names, sizes[o.Key] = append(names, o.Key), o.Size
	}
	if names, err = source.Select(names, strings.TrimSuffix(key, "/")); err != nil {
		return nil, err
	}
	for i, name := range names {
		file := location{Expected: fetch.Expected{Bytes: sizes[name]}, url: b.url(name), name: shardName(i, path.Base(name))}
		if !isName(file.name) || file.Bytes < 0 {
			return nil, fmt.Errorf("its file %.80q has no name of a file on every system, or no size", name)
		}
		p.files = append(p.files, file)
		p.key += "\n" + name
	}
	return p, nil
}

// url returns the address of a key.
func (b *bucket) url(key string) string {
	var escaped strings.Builder
	for i := range len(key) { // as signatures have it: all but what RFC 3986 reserves nothing for
		switch c := key[i]; {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9', strings.IndexByte("-._~/", c) >= 0:
			escaped.WriteByte(c)
		default:
			fmt.Fprintf(&escaped, "%%%02X", c)
		}
	}
	return b.root + "/" + escaped.String()
}

// listed is a file of a bucket.
type listed struct {
	Key  string
	Size int64
}

// list returns the files that a folder or a pattern may mean.
func (b *bucket) list(ctx context.Context, key string) (all []listed, err error) {
	prefix := key
	if i := strings.IndexAny(key, "*?["); i >= 0 {
		prefix = key[:i]
	}
	query := url.Values{"list-type": {"2"}, "prefix": {prefix}}
	for range maxListings {
		got, err := b.net.Read(ctx, b.root+"/?"+strings.ReplaceAll(query.Encode(), "+", "%20"), "application/xml")
		if err != nil {
			return nil, err
		}
		var page struct {
			Contents              []listed
			IsTruncated           bool
			NextContinuationToken string
		}
		if err := xml.NewDecoder(bytes.NewReader(got.Body)).Decode(&page); err != nil {
			return nil, fmt.Errorf("the list of bucket %s: %w", b.name, err)
		}
		if all = append(all, page.Contents...); !page.IsTruncated {
			return all, nil
		}
		if t := page.NextContinuationToken; t == "" || t == query.Get("continuation-token") || len(all) > maxListings*1000 {
			break
		}
		query.Set("continuation-token", page.NextContinuationToken)
	}
	return nil, fmt.Errorf("bucket %s has more than %d files there, or does not list them to the end: name a longer prefix", b.name, 1000*maxListings)
}
