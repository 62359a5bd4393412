package text

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxFile bounds a tokenizer's file: MaxVocabulary characters of at most six
// bytes each, and what is around them.
const maxFile = 6*MaxVocabulary + 100

// file is the form of a tokenizer's file.
type file struct {
	Type       string `json:"type"`
	Version    int    `json:"version"`
	Characters string `json:"characters"`
}

const (
	fileType    = "character"
	fileVersion = 1
)

// Encoded returns the tokenizer's file.
func (t *Tokenizer) Encoded() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(file{fileType, fileVersion, string(t.runes)}); err != nil {
		panic(err) // texts and numbers always encode
	}
	return b.Bytes()
}

// ReadTokenizer reads a tokenizer's file. Only the bytes that Encoded gives are
// one, so equal tokenizers have equal files.
func ReadTokenizer(r io.Reader) (*Tokenizer, error) {
	b, err := readAll(r, maxFile)
	if err == nil {
		var t *Tokenizer
		if t, err = parse(b); err == nil {
			return t, nil
		}
	}
	return nil, fmt.Errorf("read tokenizer: %w", err)
}

func parse(b []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, err
	}
	if f.Type != fileType || f.Version != fileVersion {
		return nil, fmt.Errorf("type %.20q, version %d: type %q, version %d is read", f.Type, f.Version, fileType, fileVersion)
	}
	runes := []rune(f.Characters)
	if len(runes) == 0 || len(runes) >= MaxVocabulary {
		return nil, fmt.Errorf("%d characters, take 1 to %d", len(runes), MaxVocabulary-1)
	}
	for i := 1; i < len(runes); i++ {
		if runes[i-1] >= runes[i] {
			return nil, fmt.Errorf("character %q after %q: they ascend, each given once", runes[i], runes[i-1])
		}
	}
	t := newTokenizer(runes)
	if !bytes.Equal(t.Encoded(), b) {
		return nil, errors.New("the file is not in the form that it is written in")
	}
	return t, nil
}

// Read returns the text in r, which must be UTF-8 of at most limit bytes.
func Read(r io.Reader, limit int64) (string, error) {
	b, err := readAll(r, limit)
	if err == nil {
		text := string(b)
		if err = check(text); err == nil {
			return text, nil
		}
	}
	return "", fmt.Errorf("read text: %w", err)
}

// readAll reads r to its end, and fails if that is after more than limit bytes.
func readAll(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("more than %d bytes", limit)
	}
	return b, nil
}

// Split returns the first nine tenths of the text, to train on, and the last
// tenth, to hold out, counted in characters.
func Split(text string) (train, heldOut string, err error) {
	if err := check(text); err != nil {
		return "", "", fmt.Errorf("split text: %w", err)
	}
	n := utf8.RuneCountInString(text)
	if n < 10 {
		return "", "", fmt.Errorf("split text: %d characters have no tenth to hold out", n)
	}
	keep := n - n/10
	for i := range text {
		if keep == 0 {
			return text[:i], text[i:], nil
		}
		keep--
	}
	return text, "", nil
}

// Vocabulary returns the number of tokens that a model needs whose tokens are the characters of what a text has to train on.
func Vocabulary(text string) (int, error) {
	part, _, err := Split(text)
	if err != nil {
		return 0, err
	}
	t, err := Train(part, DefaultVocabulary)
	if err != nil {
		return 0, err
	}
	return t.Size(), nil
}
