package tokenizer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/tally-network/tally/format/tokenizer/decode"
	"github.com/tally-network/tally/format/tokenizer/model"
	"github.com/tally-network/tally/format/tokenizer/normalize"
	"github.com/tally-network/tally/format/tokenizer/split"
)

// None stands for a special token that a file does not name.
const None = -1

// GGUF is what the metadata of a GGUF file says of its tokenizer, as [FromGGUF] reads it. Fields that
// are nil are not in the file.
type GGUF struct {
	Architecture                     string // general.architecture
	Model                            string // tokenizer.ggml.model
	Pre                              string // … pre
	Tokens                           []string
	Scores                           []float32
	Types                            []int32
	Merges                           []string
	BOS, EOS, Unknown, CLS, SEP      int32 // their ids, or None
	EOT, EOM                         int32 // that end a turn, and a message
	AddBOS, AddEOS, AddSEP, AddSpace *bool
}

// The types of tokens in a GGUF file.
const (
	normalToken = 1 + iota
	unknownToken
	controlToken
	userToken
	unusedToken
	byteToken
)

// preSplit is what a name in tokenizer.ggml.pre stands for.
type preSplit struct {
	expressions  []string // one after the other
	normalizer   normalize.Normalizer
	ignoreMerges bool
	addBOS       bool
}

// Expressions of models that have no scanner.
const (
	o200kCase   = `(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
	o200kUpper  = `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
	o200kLower  = `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
	o200kBefore = `[^\r\n\p{L}\p{N}]?`
	o200kOthers = ` ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	o200k       = o200kBefore + o200kUpper + `*` + o200kLower + `+` + o200kCase + `|` + o200kBefore + o200kUpper + `+` + o200kLower + `*` + o200kCase +
		`|\p{N}{1,3}|` + o200kOthers
	tekken = o200kBefore + o200kUpper + `*` + o200kLower + `+|` + o200kBefore + o200kUpper + `+` + o200kLower + `*|\p{N}|` + o200kOthers
	qwen35 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	// minicpm5 is the last of two expressions.
	minicpm5  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	seedCoder = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+`
	cjk       = `[一-龥ࠀ-一가-퟿]+`
	// deepseekV3 is the last of three expressions.
	deepseekV3 = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
	// deepseekLetters are the letters of scripts that have cases.
	deepseekLetters = `\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\x{1f7d}ᾀ-ᾴᾶ-ᾼ\x{1fbe}ῂ-ῄῆ-ῌῐ-\x{1fd3}ῖ-\x{1fdb}ῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\x{2126}ℨ\x{212a}-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+`
)

var (
	gpt2Split   = preSplit{expressions: []string{split.GPT2}}
	smolSplit   = preSplit{expressions: []string{`\p{N}`, split.GPT2}}
	llama3Split = preSplit{expressions: []string{split.Llama3}}
	qwen2Split  = preSplit{expressions: []string{split.Qwen2}}
	o200kSplit  = preSplit{expressions: []string{o200k}}
)

// preSplits are the names in tokenizer.ggml.pre that are supported.
var preSplits = map[string]preSplit{
	"default": {expressions: []string{"[\\p{P}\\$\\+<=>\\^~\\|]+", split.GPT2, `\p{N}+`, `[0-9][0-9][0-9]`}},
	"gpt-2":   gpt2Split, "phi-2": gpt2Split, "mpt": gpt2Split, "olmo": gpt2Split, "jais": gpt2Split, "trillion": gpt2Split, "mellum": gpt2Split, "a.x-4.0": gpt2Split,
	"smollm": smolSplit, "starcoder": smolSplit, "refact": smolSplit, "command-r": smolSplit, "codeshell": smolSplit, "exaone": smolSplit, "minerva-7b": smolSplit,
	"llama-bpe": {expressions: llama3Split.expressions, ignoreMerges: true, addBOS: true},
	"llama3":    {expressions: llama3Split.expressions, ignoreMerges: true, addBOS: true},
	"llama-v3":  {expressions: llama3Split.expressions, ignoreMerges: true, addBOS: true},
	"falcon3":   {expressions: llama3Split.expressions, ignoreMerges: true, addBOS: true},
	"dbrx":      llama3Split, "smaug-bpe": llama3Split,
	"qwen2":     {expressions: qwen2Split.expressions, normalizer: normalize.NFC},
	"stablelm2": qwen2Split, "deepseek-r1-qwen": qwen2Split, "megrez": qwen2Split, "kormo": qwen2Split, "f2llmv2": qwen2Split,
	"qwen35": {expressions: []string{qwen35}, normalizer: normalize.NFC},
	"gpt-4o": o200kSplit, "llama4": o200kSplit,
	"tekken":         {expressions: []string{tekken}, ignoreMerges: true, addBOS: true},
	"falcon":         {expressions: []string{"[\\p{P}\\$\\+<=>\\^~\\|`]+", split.GPT2, `[0-9][0-9][0-9]`}},
	"minicpm5":       {expressions: []string{`\p{N}{1,3}`, minicpm5}, ignoreMerges: true},
	"seed-coder":     {expressions: []string{seedCoder}},
	"deepseek-llm":   {expressions: []string{`[\r\n]`, deepseekLetters, `\s?[!-/:-~！-／：-～‘-‟　-。]+`, `\s+$`, cjk, `\p{N}+`}},
	"deepseek-coder": {expressions: []string{`[\r\n]`, `\s?\p{L}+`, `\s?\p{P}+`, cjk, `\p{N}`}},
	"deepseek-v3":    {expressions: []string{`\p{N}{1,3}`, `[一-龥぀-ゟ゠-ヿ]+`, deepseekV3}},
}

// Spec returns the specification of the tokenizer of a GGUF file.
//
// The models gpt2, llama and bert are supported. Words are cut as llama.cpp cuts them for the name
// in pre, with Unicode's classes as the reference has them. For qwen2 text is put in the form
// NFC first, as the model was trained, which llama.cpp leaves out. Text of control
// and user-defined tokens is found in the text, the longest first. Those of Phi-3 take the white space behind
// them, as its tokenizer.json says and llama.cpp does by the model's name.
func (g GGUF) Spec() (Spec, error) {
	s, err := g.spec()
	if err != nil {
		return Spec{}, fmt.Errorf("tokenizer of a GGUF file: %w", err)
	}
	return s, nil
}

func (g GGUF) spec() (Spec, error) {
	if n := len(g.Tokens); g.Types != nil && len(g.Types) != n || g.Scores != nil && len(g.Scores) != n {
		return Spec{}, fmt.Errorf("%d tokens have %d types and %d scores", n, len(g.Types), len(g.Scores))
	}
	switch g.Model {
	case "gpt2":
		return g.bpe()
	case "llama":
		return g.scored()
	case "bert":
		return g.wordPiece()
	}
	return Spec{}, fmt.Errorf("model %.30q is not supported, want gpt2, llama or bert", g.Model)
}

// added are the tokens that are found in the text.
func (g GGUF) added() (out []Added, err error) {
	for id, kind := range g.Types {
		switch kind {
		case controlToken, unknownToken, userToken:
			if g.Tokens[id] != "" {
				out = append(out, Added{ID: int32(id), Content: g.Tokens[id], Special: kind != userToken})
			}
		case normalToken, unusedToken, byteToken:
		default:
			return nil, fmt.Errorf("token %d has type %d, want %d to %d", id, kind, normalToken, byteToken)
		}
	}
	return out, nil
}

// around puts the special tokens around texts that flags ask for.
func (g GGUF) around(s *Spec, bos, eos bool) error {
	if chosen(g.AddSEP, false) && g.Model != "bert" {
		return errors.New("add_sep_token is supported for the model bert alone")
	}
	if bos = chosen(g.AddBOS, bos); bos && g.BOS != None {
		s.Before = []int32{g.BOS}
	}
	if eos = chosen(g.AddEOS, eos); eos && g.EOS != None {
		s.After = []int32{g.EOS}
	}
	if bos && g.BOS == None || eos && g.EOS == None {
		return errors.New("a special token is to be added, and the file does not name it")
	}
	return nil
}

func chosen(b *bool, without bool) bool {
	if b != nil {
		return *b
	}
	return without
}

func (g GGUF) bpe() (s Spec, err error) {
	name := g.Pre
	if name == "" {
		name = "default"
	}
	pre, ok := preSplits[name]
	if !ok {
		return s, fmt.Errorf("pre %.30q is not supported, want one of %v", name, slices.Sorted(maps.Keys(preSplits)))
	}
	if chosen(g.AddSpace, false) {
		return s, errors.New("add_space_prefix is not supported for the model gpt2")
	}
	for _, e := range pre.expressions {
		r, err := split.NewRegex(e, split.Isolated, false)
		if err != nil {
			return s, err
		}
		s.Splitters = append(s.Splitters, r)
	}
	s.Splitters = append(s.Splitters, split.ByteLevel{Raw: true})
	s.Normalizer = pre.normalizer
	s.Decoders = []decode.Decoder{decode.ByteLevel{}}
	if len(g.Merges) > model.MaxMerges {
		return s, fmt.Errorf("%d merges, limit %d", len(g.Merges), model.MaxMerges)
	}
	merges := make([][2]string, len(g.Merges))
	for i, m := range g.Merges {
		if merges[i], err = mergeOf(m); err != nil {
			return s, err
		}
	}
	if s.Vocabulary, err = model.NewVocabulary(g.Tokens, false); err != nil {
		return s, err
	}
	if s.Model, err = model.NewBPE(s.Vocabulary, merges, model.BPEOptions{Bytes: true, IgnoreMerges: pre.ignoreMerges}); err != nil {
		return s, err
	}
	if s.Added, err = g.added(); err != nil {
		return s, err
	}
	return s, g.around(&s, pre.addBOS, false)
}

func (g GGUF) scored() (s Spec, err error) {
	if g.Pre != "" && g.Pre != "default" {
		return s, fmt.Errorf("pre %.30q is not supported for the model llama", g.Pre)
	}
	if s.Vocabulary, err = model.NewVocabulary(g.Tokens, false); err != nil {
		return s, err
	}
	if s.Model, err = model.NewScored(s.Vocabulary, g.Scores); err != nil {
		return s, err
	}
	if s.Added, err = g.added(); err != nil {
		return s, err
	}
	if g.Architecture == "phi3" { // whose files do not tell
		for i, a := range s.Added {
			s.Added[i].StripRight = !slices.Contains([]string{"<unk>", "<s>", "<|endoftext|>"}, a.Content)
		}
	}
	s.Normalizer = normalize.Replace{Old: " ", New: "▁"}
	s.Decoders = []decode.Decoder{decode.Replace{Replace: normalize.Replace{Old: "▁", New: " "}}, decode.ByteFallback{}, decode.Fuse{}}
	if chosen(g.AddSpace, true) {
		s.Normalizer = normalize.Sequence{normalize.Prepend{Text: "▁"}, s.Normalizer}
		s.Decoders = append(s.Decoders, decode.Strip{Content: ' ', Start: 1})
	}
	return s, g.around(&s, true, false)
}

// wordPiece gives tokens the form of BERT's own files: in GGUF those that begin a word have a sign.
func (g GGUF) wordPiece() (s Spec, err error) {
	tokens := make([]string, len(g.Tokens))
	special := func(id int) bool { return g.Types != nil && g.Types[id] == controlToken || id == int(g.Unknown) }
	for id, t := range g.Tokens {
		bare, begins := strings.CutPrefix(t, "▁")
		switch {
		case special(id) || t == "" || strings.HasPrefix(t, "[") && strings.HasSuffix(t, "]") && len(t) >= 2:
			tokens[id] = t
		case strings.IndexFunc(t, unicode.IsUpper) >= 0:
			return s, fmt.Errorf("token %.60q has capital letters: models that tell them apart are not supported, since the file does not say so", t)
		case begins:
			tokens[id] = bare
		default:
			tokens[id] = "##" + t
		}
	}
	if int(g.Unknown) >= len(tokens) || g.Unknown < 0 || g.CLS == None || g.SEP == None {
		return s, errors.New("the file does not name the unknown token, CLS and SEP")
	}
	if s.Vocabulary, err = model.NewVocabulary(tokens, false); err != nil {
		return s, err
	}
	if s.Model, err = model.NewWordPiece(s.Vocabulary, tokens[g.Unknown], "##", 100); err != nil {
		return s, err
	}
	if s.Added, err = g.added(); err != nil {
		return s, err
	}
	s.Normalizer = normalize.Bert{Clean: true, Chinese: true, Accents: true, Lowercase: true}
	s.Splitters = []split.Splitter{split.Bert{}}
	s.Decoders = []decode.Decoder{decode.WordPiece{Prefix: "##", Cleanup: true}}
	if chosen(g.AddBOS, true) {
		s.Before = []int32{g.CLS}
	}
	if chosen(g.AddSEP, true) {
		s.After = []int32{g.SEP}
	}
	return s, nil
}

// mergeOf reads "a b".
func mergeOf(text string) ([2]string, error) {
	a, b, ok := strings.Cut(text, " ")
	if !ok || strings.Contains(b, " ") {
		return [2]string{}, fmt.Errorf("merge %.60q: want two tokens with a space between them", text)
	}
	return [2]string{a, b}, nil
}
