package tokenizer

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/tally-network/tally/format/tokenizer/model"
	"github.com/tally-network/tally/format/tokenizer/split"
)

// Parse reads a tokenizer.json.
func Parse(text []byte) (*Tokenizer, error) {
	s, err := readSpec(text)
	if err == nil {
		var t *Tokenizer
		if t, err = New(s); err == nil {
			return t, nil
		}
	}
	return nil, fmt.Errorf("read tokenizer: %w", err)
}

func readSpec(text []byte) (s Spec, err error) {
	if len(text) > MaxFile {
		return s, fmt.Errorf("the file has %d bytes, limit %d", len(text), MaxFile)
	}
	if !utf8.Valid(text) {
		return s, errors.New("the file is not UTF-8")
	}
	o, err := objectOf(text, "version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model")
	if err == nil {
		err = o.need("model")
	}
	if err != nil {
		return s, err
	}
	if v, err := o.text("version"); err != nil || o.has("version") && v != "1.0" {
		return s, errors.Join(err, fmt.Errorf("version %.20q, want 1.0", v))
	}
	if o.has("normalizer") {
		n, err := readNormalizers(o["normalizer"], nil, 0)
		if err != nil {
			return s, about("normalizer", err)
		}
		if len(n) > 0 {
			s.Normalizer = n
		}
	}
	if o.has("pre_tokenizer") {
		if s.Splitters, err = readSplitters(o["pre_tokenizer"], nil, 0); err != nil {
			return s, about("pre_tokenizer", err)
		}
	}
	if err = readModel(o["model"], &s); err != nil {
		return s, about("model", err)
	}
	if o.has("post_processor") {
		if err = readProcessor(o["post_processor"], &s, 0); err != nil {
			return s, about("post_processor", err)
		}
	}
	if o.has("decoder") {
		if s.Decoders, err = readDecoders(o["decoder"], nil, 0); err != nil {
			return s, about("decoder", err)
		}
	}
	if o.has("added_tokens") {
		err = about("added_tokens", readAdded(o["added_tokens"], &s))
	}
	return s, err
}

// readAdded reads the added tokens. The reference gives those that the vocabulary lacks the next
// ids, whatever the file says, so another id is refused.
func readAdded(r raw, s *Spec) error {
	next := s.Vocabulary.Len()
	return items(r, func(r raw) error {
		o, err := objectOf(r, "id", "content", "single_word", "lstrip", "rstrip", "normalized", "special")
		if err == nil {
			err = o.need("id", "content", "single_word", "lstrip", "rstrip", "normalized", "special")
		}
		if err != nil {
			return err
		}
		var a Added
		id, err := o.integer("id", model.MaxTokens-1, 0)
		if err == nil {
			a.Content, err = o.text("content")
		}
		if err == nil {
			err = o.flags(map[string]*bool{
				"single_word": &a.SingleWord, "lstrip": &a.StripLeft, "rstrip": &a.StripRight, "normalized": &a.Normalized, "special": &a.Special,
			})
		}
		if err != nil || a.Content == "" { // which the reference passes over
			return err
		}
		a.ID = int32(id)
		if _, ok := s.Vocabulary.ID(a.Content); !ok {
			if id != next {
				return fmt.Errorf("%.60q has id %d, and the reference would give it %d: number added tokens from the end of the vocabulary on", a.Content, id, next)
			}
			next++
		}
		if len(s.Added) == MaxAdded {
			return fmt.Errorf("more than %d", MaxAdded)
		}
		s.Added = append(s.Added, a)
		return nil
	})
}

// readModel reads the model and its vocabulary.
func readModel(r raw, s *Spec) error {
	o, err := objectOf(r, "type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges",
		"vocab", "merges", "max_input_chars_per_word", "unk_id")
	if err == nil {
		err = o.need("vocab")
	}
	if err != nil {
		return err
	}
	kind, err := o.text("type")
	if err != nil {
		return err
	}
	if !o.has("type") { // as in old files
		switch {
		case o.has("merges"):
			kind = "BPE"
		case o.has("max_input_chars_per_word"):
			kind = "WordPiece"
		case o["vocab"][0] == '[':
			kind = "Unigram"
		}
	}
	switch kind {
	case "BPE":
		return readBPE(o, s)
	case "WordPiece":
		return readWordPiece(o, s)
	case "Unigram":
		return readUnigram(o, s)
	}
	return fmt.Errorf("type %.30q is not supported, want BPE, WordPiece or Unigram", kind)
}

// readVocabulary reads an object of tokens and their ids.
func readVocabulary(r raw) (*model.Vocabulary, error) {
	s := &scanner{b: r}
	var tokens []string
	count := 0
	var empty error
	err := s.object(func(token string) error {
		id, err := s.integer(model.MaxTokens - 1)
		if err != nil {
			return err
		}
		if id >= len(tokens) {
			tokens = append(tokens, make([]string, id+1-len(tokens))...)
		}
		if tokens[id] != "" {
			return fmt.Errorf("id %d is also that of %.60q", id, tokens[id])
		}
		if token == "" {
			empty = errors.New("a token is empty")
		}
		tokens[id] = token
		count++
		return nil
	})
	if err = errors.Join(err, empty); err == nil {
		err = s.done()
	}
	if err != nil {
		return nil, about("vocab", err)
	}
	v, err := model.NewVocabulary(tokens, false)
	if err == nil && v.Len() != count {
		err = fmt.Errorf("%d tokens of %d are different", v.Len(), count)
	}
	return v, about("vocab", err)
}

func readBPE(o object, s *Spec) error {
	var b model.BPEOptions
	err := o.need("merges")
	if err == nil && o.has("dropout") && string(o["dropout"]) != "0.0" && string(o["dropout"]) != "0" {
		err = errors.New("dropout draws tokens by chance, which is not supported: set it to null")
	}
	if err == nil {
		err = o.flags(map[string]*bool{"fuse_unk": &b.FuseUnknown, "byte_fallback": &b.ByteFallback, "ignore_merges": &b.IgnoreMerges})
	}
	for key, v := range map[string]*string{"unk_token": &b.Unknown, "continuing_subword_prefix": &b.Prefix, "end_of_word_suffix": &b.Suffix} {
		if err == nil {
			*v, err = o.text(key)
		}
	}
	if err != nil {
		return err
	}
	b.Strict = o.has("unk_token") && b.Unknown == "" // the reference looks for a token without a name
	if s.Vocabulary, err = readVocabulary(o["vocab"]); err != nil {
		return err
	}
	merges, err := readMerges(o["merges"])
	if err != nil {
		return about("merges", err)
	}
	if n := len(s.Splitters); n > 0 && b.Prefix == "" && b.Suffix == "" {
		if l, ok := s.Splitters[n-1].(split.ByteLevel); ok {
			l.Raw, b.Bytes = true, true
			s.Splitters[n-1] = l
		}
	}
	s.Model, err = model.NewBPE(s.Vocabulary, merges, b)
	return err
}

// readMerges reads pairs, as texts "a b" or as lists ["a", "b"].
func readMerges(r raw) (out [][2]string, err error) {
	s := &scanner{b: r}
	err = s.list('[', ']', func() error {
		if len(out) == model.MaxMerges {
			return fmt.Errorf("more than %d", model.MaxMerges)
		}
		var pair []string
		if s.space(); s.at < len(s.b) && s.b[s.at] == '[' {
			err := s.list('[', ']', func() error {
				if len(pair) == 2 {
					return errors.New("more than two tokens")
				}
				t, err := s.text()
				pair = append(pair, t)
				return err
			})
			if err != nil || len(pair) != 2 {
				return errors.Join(err, fmt.Errorf("merge %d: %.30q is no pair", len(out), pair))
			}
			out = append(out, [2]string{pair[0], pair[1]})
			return nil
		}
		t, err := s.text()
		if err != nil {
			return err
		}
		m, err := mergeOf(t)
		out = append(out, m)
		return err
	})
	if err == nil {
		err = s.done()
	}
	return out, err
}

func readWordPiece(o object, s *Spec) error {
	err := o.need("unk_token", "continuing_subword_prefix", "max_input_chars_per_word")
	if err != nil {
		return err
	}
	unknown, err := o.text("unk_token")
	if err != nil {
		return err
	}
	prefix, err := o.text("continuing_subword_prefix")
	if err != nil {
		return err
	}
	most, err := o.integer("max_input_chars_per_word", MaxFile, 0)
	if err != nil {
		return err
	}
	if s.Vocabulary, err = readVocabulary(o["vocab"]); err != nil {
		return err
	}
	s.Model, err = model.NewWordPiece(s.Vocabulary, unknown, prefix, most)
	return err
}

func readUnigram(o object, s *Spec) error {
	unknown, err := o.integer("unk_id", model.MaxTokens-1, -1)
	if err != nil {
		return err
	}
	fallback, err := o.flag("byte_fallback", false)
	if err != nil {
		return err
	}
	var tokens []string
	var scores []float64
	v := &scanner{b: o["vocab"]}
	err = v.list('[', ']', func() error {
		if len(tokens) == model.MaxTokens {
			return fmt.Errorf("more than %d tokens", model.MaxTokens)
		}
		part := 0
		err := v.list('[', ']', func() (err error) {
			switch part++; part {
			case 1:
				var t string
				t, err = v.text()
				tokens = append(tokens, t)
			case 2:
				var f float64
				f, err = v.float()
				scores = append(scores, f)
			default:
				err = errors.New("more than a token and its score")
			}
			return err
		})
		if err == nil && part != 2 {
			err = errors.New("a token and its score are wanted")
		}
		return err
	})
	if err == nil {
		err = v.done()
	}
	if err != nil {
		return about("vocab", err)
	}
	if s.Vocabulary, err = model.NewVocabulary(tokens, true); err != nil {
		return err
	}
	s.Model, err = model.NewUnigram(s.Vocabulary, scores, unknown, fallback)
	return err
}
