package gateway

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/tally-network/tally/format/yaml"
	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/replace"
)

// Keys are who may ask, and how much. Nil keys let everybody.
type Keys struct {
	byDigest map[[sha256.Size]byte]*Key
	path     string // of what they have spent; "": it is not kept
}

// Key is one of them.
type Key struct {
	Name   string `json:"name"`
	Digest string `json:"sha256"`              // of the key, in hexadecimal
	Budget int64  `json:"budget"`              // tokens that it may read and write; 0: no bound
	Rate   int    `json:"requests_per_minute"` // 0: no bound
	Owner  bool   `json:"owner"`               // may also fetch models, and say how long they stay in memory

	limiter *rate.Limiter
	spent   atomic.Int64
}

const (
	maxKeysFile = 1 << 20 // bytes
	maxKeys     = 1 << 12
)

// NewKey returns a key that nobody can guess, and its digest for a file of keys.
func NewKey() (key, sum string) {
	key = "tally-" + rand.Text()
	d := digest(key)
	return key, hex.EncodeToString(d[:])
}

// OpenKeys reads a file of keys, and beside it what they have spent.
func OpenKeys(path string) (*Keys, error) {
	text, err := bounded.ReadFile(path, maxKeysFile)
	if err != nil {
		return nil, err
	}
	k, err := ReadKeys(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	k.path = path + ".spent"
	text, err = bounded.ReadFile(k.path, maxKeysFile)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	} else if err != nil {
		return nil, err
	}
	spent := map[string]int64{}
	if err := json.Unmarshal(text, &spent); err != nil {
		return nil, fmt.Errorf("%s: %w", k.path, err)
	}
	for _, key := range k.byDigest { // each has its own
		key.spent.Store(max(0, spent[key.Name]))
	}
	return k, nil
}

// ReadKeys reads keys as YAML: keys is a list of name, sha256, budget and requests_per_minute.
func ReadKeys(text []byte) (*Keys, error) {
	var file struct {
		Keys []*Key `json:"keys"`
	}
	if err := yaml.Decode(text, &file); err != nil {
		return nil, err
	}
	if len(file.Keys) == 0 || len(file.Keys) > maxKeys {
		return nil, fmt.Errorf("there are %d keys: want 1 to %d", len(file.Keys), maxKeys)
	}
	k, names := &Keys{byDigest: map[[sha256.Size]byte]*Key{}}, map[string]bool{}
	for i, key := range file.Keys {
		if key == nil {
			return nil, fmt.Errorf("key %d is empty", i)
		}
		var d [sha256.Size]byte
		n, err := hex.Decode(d[:], []byte(key.Digest[:min(len(key.Digest), 2*len(d))]))
		switch {
		case key.Name == "" || names[key.Name]:
			return nil, fmt.Errorf("key %d has the name %q: want one of its own", i, key.Name)
		case err != nil || n != len(d) || len(key.Digest) != 2*len(d):
			return nil, fmt.Errorf("key %q: sha256 is not 64 hexadecimal digits", key.Name)
		case k.byDigest[d] != nil:
			return nil, fmt.Errorf("key %q is also that of %q", key.Name, k.byDigest[d].Name)
		case key.Budget < 0 || key.Rate < 0:
			return nil, fmt.Errorf("key %q has a budget of %d and %d requests per minute: want at least 0", key.Name, key.Budget, key.Rate)
		}
		if key.Rate > 0 {
			key.limiter = rate.NewLimiter(rate.Every(time.Minute/time.Duration(key.Rate)), key.Rate)
		}
		names[key.Name], k.byDigest[d] = true, key
	}
	return k, nil
}

// Empty reports whether everybody may ask.
func (k *Keys) Empty() bool { return k == nil || len(k.byDigest) == 0 }

// Save writes what keys have spent, if they came from a file.
func (k *Keys) Save() error {
	if k.Empty() || k.path == "" {
		return nil
	}
	text, err := json.Marshal(k.Spent())
	if err != nil {
		return err
	}
	return replace.File(k.path, text)
}

// Spent returns how many tokens each key has used, by name.
func (k *Keys) Spent() map[string]int64 {
	out := map[string]int64{}
	if !k.Empty() {
		for _, key := range k.byDigest { // into a map again
			out[key.Name] = key.spent.Load()
		}
	}
	return out
}

// admit returns the key that a secret is, if it may ask now.
func (k *Keys) admit(secret string) (*Key, error) {
	if k.Empty() {
		return nil, nil
	}
	key := k.byDigest[digest(secret)]
	if key == nil {
		return nil, &api.Fault{Status: http.StatusUnauthorized, Code: "invalid_api_key", Message: "the API key is not known here: send one as Authorization: Bearer KEY, or as X-Api-Key"}
	}
	if key.limiter == nil {
		return key, nil
	}
	if r := key.limiter.Reserve(); r.Delay() > 0 {
		wait := r.Delay()
		r.Cancel()
		return nil, &api.Fault{Status: http.StatusTooManyRequests, Code: "rate_limit_exceeded", Message: fmt.Sprintf("key %s may ask %d times a minute: wait", key.Name, key.Rate), Retry: wait}
	}
	return key, nil
}

// spend takes tokens from the budget. Those that do not fit are not taken.
func (k *Key) spend(tokens int64) error {
	if k == nil {
		return nil
	}
	for {
		spent := k.spent.Load()
		if k.Budget > 0 && tokens > k.Budget-spent {
			return &api.Fault{Status: http.StatusTooManyRequests, Code: "insufficient_quota", Message: fmt.Sprintf("key %s has used %d of its %d tokens: ask for a larger budget", k.Name, spent, k.Budget)}
		}
		if k.spent.CompareAndSwap(spent, spent+tokens) {
			return nil
		}
	}
}
