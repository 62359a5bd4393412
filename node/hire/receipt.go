package hire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/internal/replace"
	"github.com/tally-network/tally/node/tabs"
)

// Receipt is a reply with all by which anybody who has the model can check it, and what became of that.
type Receipt struct {
	tabs.Proof
	Check *Check // nil: nobody was to check it
	At    time.Time
}

// Check is what became of a check.
type Check struct {
	By      string     `json:"by,omitempty"`      // account
	Receipt canon.Hash `json:"receipt,omitzero"`  // of the checker
	Wrong   int        `json:"wrong"`             // the first wrong token; −1: none
	Pages   bool       `json:"pages,omitempty"`   // the tokens are right, and the provider has not computed them
	Here    bool       `json:"here,omitempty"`    // this machine has found that
	Dispute string     `json:"dispute,omitempty"` // who disputes it on the chain, or why nobody does

	accusers []string // who has found it wrong
	Error    string   `json:"error,omitempty"` // why it could not be checked
}

// wrong reports whether something was found.
func (c *Check) wrong() bool { return c.Wrong >= 0 || c.Pages }

// Right reports whether the reply was checked, and nothing was found.
func (c *Check) Right() bool { return c != nil && c.Error == "" && !c.wrong() }

// Says says in words what was found.
func (c *Check) Says() string {
	switch {
	case c.Error != "":
		return "it was not checked: " + c.Error
	case c.Wrong >= 0:
		return fmt.Sprintf("token %d of the reply is wrong", c.Wrong)
	case c.Pages:
		return "its tokens are right, but other pages were signed for"
	}
	return "it is right"
}

// maxReceipt bounds the file of a receipt in bytes.
const maxReceipt = 64 << 20

// file is a receipt on the disk: words for people, and the signed parts as they were signed.
type file struct {
	ID       string    `json:"id"`
	Provider string    `json:"provider"`
	Model    string    `json:"model"`
	Prompt   int       `json:"prompt_tokens"`
	Tokens   int       `json:"reply_tokens"`
	Price    uint64    `json:"price_utally"`
	At       time.Time `json:"at"`
	Check    *Check    `json:"check,omitempty"`
	Signed   []byte    `json:"signed"`
}

// MarshalJSON implements json.Marshaler.
func (r *Receipt) MarshalJSON() ([]byte, error) {
	price, err := r.Receipt.Price(&r.Terms)
	if err != nil {
		return nil, err
	}
	return json.Marshal(file{
		ID: r.Receipt.ID().String(), Provider: r.Terms.Provider.Account, Model: r.Terms.Model.String(), Prompt: len(r.Request.Prompt), Tokens: len(r.Reply),
		Price: price, At: r.At, Check: r.Check, Signed: canon.Marshal(&r.Proof),
	})
}

// UnmarshalJSON implements json.Unmarshaler. What people read is taken from what is signed.
func (r *Receipt) UnmarshalJSON(b []byte) error {
	var f file
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	if err := canon.UnmarshalWithin(f.Signed, &r.Proof, maxReceipt); err != nil {
		return err
	}
	r.Check, r.At = f.Check, f.At
	return nil
}

// ReadReceipt reads the file of a receipt.
func ReadReceipt(path string) (*Receipt, error) {
	text, err := bounded.ReadFile(path, maxReceipt)
	if err != nil {
		return nil, err
	}
	var r Receipt
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s is no receipt: %w", path, err)
	}
	return &r, nil
}

// ReceiptPath returns where a consumer with a folder keeps a receipt.
func ReceiptPath(dir, id string) string { return filepath.Join(dir, "receipts", id+".json") }

// keepReceipt writes a receipt.
func keepReceipt(c *Consumer, r *Receipt) error {
	path := ReceiptPath(c.Dir, r.Receipt.ID().String())
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return replace.File(path, append(text, '\n'))
}

// Blame is why a provider is dealt with no more.
type Blame struct {
	Why   string    `json:"why"`
	At    time.Time `json:"at"`
	Until time.Time `json:"until"`
}

// blames are who is dealt with no more.
type blames struct {
	mu   sync.Mutex
	path string
	by   map[string]Blame
}

func (b *blames) open(path string) error {
	b.path, b.by = path, map[string]Blame{}
	text, err := bounded.ReadFile(path, 4<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err == nil {
		err = json.Unmarshal(text, &b.by)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (b *blames) is(account string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Now().Before(b.by[account].Until)
}

func (b *blames) add(account, why string, lasts time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now().UTC()
	for k, v := range b.by { // each alone
		if now.After(v.Until) {
			delete(b.by, k)
		}
	}
	until := now.Add(lasts)
	if old := b.by[account]; old.Until.After(until) {
		until = old.Until
	}
	b.by[account] = Blame{why, now, until}
	text, err := json.MarshalIndent(b.by, "", "  ")
	if err != nil {
		return err
	}
	return replace.File(b.path, append(text, '\n'))
}

// Blamed returns who is dealt with no more, and why.
func (c *Consumer) Blamed() map[string]Blame {
	c.blamed.mu.Lock()
	defer c.blamed.mu.Unlock()
	out := map[string]Blame{}
	for k, v := range c.blamed.by { // each alone
		if time.Now().Before(v.Until) {
			out[k] = v
		}
	}
	return out
}
