package reply

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/tally-network/tally/gateway/api"
	"github.com/tally-network/tally/model/lm"
)

// Ask is a request, as every API has it. Its zero values ask for what a model does by itself.
type Ask struct {
	Model     string
	Chat      *Conversation // or
	Prompts   []Prompt
	Field     string // in which the prompt stands, for faults
	Choices   int    // of each prompt; 0: 1
	MaxTokens int    // tokens of a reply; 0: what the context holds
	Context   int    // tokens of prompt and reply; 0: what the model holds
	Stops     []string
	OneCall   bool // of a tool, with which the reply ends
	Format    *Format
	MustCall  []Tool // the reply is a call of one of them; nil: it need not be one
	Sampling  lm.Sampling
	Seed      *uint64
	Likeliest *int // how many of the likeliest tokens each token names, beside its own likelihood; nil: not even that
	Date      time.Time
	Keep      *time.Duration // how long the model stays ready
}

// minTemperature is the least by which logits are divided. Below it they would be infinities, and the first would win.
const minTemperature = 1e-6

// Prompt is a text, or its tokens.
type Prompt struct {
	Text   string
	Tokens []int32 // if not nil
}

// Headers that any client can send with any API.
const (
	SeedHeader = "Tally-Seed" // for APIs that have no field for it
	DateHeader = "Tally-Date" // what templates are told: 2006-01-02
)

// minYear is the first that templates are told. The zero date stands for today.
const minYear = 1900

// ReadHeaders takes seed and date from headers.
func (a *Ask) ReadHeaders(h http.Header) error {
	if text := h.Get(SeedHeader); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return api.Invalid(SeedHeader, "the header %s is %q: want an integer from 0 to 2⁶⁴−1", SeedHeader, text)
		}
		a.Seed = &n
	}
	if text := h.Get(DateHeader); text != "" {
		date, err := time.Parse(time.DateOnly, text)
		if err != nil || date.Year() < minYear {
			return api.Invalid(DateHeader, "the header %s is %q: want a date as 2006-01-02, of %d or later", DateHeader, text, minYear)
		}
		a.Date = date
	}
	return nil
}

// Number is a field of sampling, with the range that it may have.
type Number struct {
	Name     string
	Value    *float64
	Low, Top float64
	To       *float32
}

// SetNumbers sets those that are given, if they are in their range.
func SetNumbers(all ...Number) error {
	for _, n := range all {
		if n.Value == nil {
			continue
		}
		if v := *n.Value; !(v >= n.Low && v <= n.Top) {
			return api.Invalid(n.Name, "%s is %v: want %v to %v", n.Name, v, n.Low, n.Top)
		}
		*n.To = float32(*n.Value)
		switch {
		case n.Name == "top_p": // lm takes 0 for all
			*n.To = max(*n.To, math.SmallestNonzeroFloat32)
		case n.Name == "temperature" && *n.To < minTemperature:
			*n.To = 0
		}
	}
	return nil
}

// ReadBias reads logit_bias, whose keys are ids of tokens.
func ReadBias(name string, given map[string]float64) (map[int32]float32, error) {
	if len(given) == 0 {
		return nil, nil
	}
	if len(given) > MaxBias {
		return nil, api.Invalid(name, "%s names %d tokens: want at most %d", name, len(given), MaxBias)
	}
	bias := make(map[int32]float32, len(given))
	for key, v := range given { // each has its own token, or is refused
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil || id < 0 || strconv.FormatInt(id, 10) != key {
			return nil, api.Invalid(name, "%s names %q: want the id of a token", name, key)
		}
		if math.Abs(v) > 100 {
			return nil, api.Invalid(name, "%s of token %d is %v: want −100 to 100", name, id, v)
		}
		bias[int32(id)] = float32(v)
	}
	return bias, nil
}

var errNoModel = api.Invalid("model", "model is missing: name one of those that are listed")

// check refuses what no model could do.
func (a *Ask) check() error {
	replies := max(1, len(a.Prompts)) * a.Choices
	switch {
	case a.Model == "":
		return errNoModel
	case a.Choices < 1 || a.Choices > MaxReplies:
		return api.Invalid("n", "n is %d: want 1 to %d", a.Choices, MaxReplies)
	case replies > MaxReplies:
		return api.Invalid(a.Field, "%d replies are asked for at once: want at most %d", replies, MaxReplies)
	case a.MaxTokens < 0:
		return api.Invalid("max_tokens", "%d tokens are asked for: want at least 1", a.MaxTokens)
	case len(a.Stops) > MaxStops:
		return api.Invalid("stop", "there are %d stop strings: want at most %d", len(a.Stops), MaxStops)
	case a.Likeliest != nil && (*a.Likeliest < 0 || *a.Likeliest > MaxLikeliest):
		return api.Invalid("top_logprobs", "%d likeliest tokens are asked for: want 0 to %d", *a.Likeliest, MaxLikeliest)
	}
	for _, s := range a.Stops {
		if s == "" || len(s) > MaxStopBytes {
			return api.Invalid("stop", "a stop string has %d bytes: want 1 to %d", len(s), MaxStopBytes)
		}
	}
	return nil
}

// date returns what templates are told: today, unless the request says otherwise.
func (a *Ask) date() time.Time {
	if a.Date.IsZero() {
		return time.Now().UTC().Truncate(24 * time.Hour)
	}
	return a.Date
}

// drawSeed returns a seed that no number of JavaScript rounds.
func drawSeed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:]) >> 11
}

const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// NewID returns a random name of letters and digits.
func NewID(length int) string {
	b := make([]byte, length)
	_, _ = rand.Read(b) // never fails
	for i, c := range b {
		b[i] = letters[int(c)%len(letters)] // a name, which may be a little likelier than others
	}
	return string(b)
}

// Unknown is the fault that [Models.Open] returns for a name that it does not have.
func Unknown(name string) error {
	return &api.Fault{Status: http.StatusNotFound, Code: "model_not_found", Param: "model", Message: fmt.Sprintf("model %q not found: see the list of models", name)}
}
