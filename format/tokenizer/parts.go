package tokenizer

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tally-network/tally/format/tokenizer/decode"
	"github.com/tally-network/tally/format/tokenizer/model"
	"github.com/tally-network/tally/format/tokenizer/normalize"
	"github.com/tally-network/tally/format/tokenizer/pattern"
	"github.com/tally-network/tally/format/tokenizer/split"
)

// Bounds of sequences.
const (
	maxNesting = 8  // sequences inside each other
	maxParts   = 32 // parts of a sequence, those of sequences in it too
)

// partOf reads a part: its type, and its keys, of which those of its type are known.
func partOf(r raw, keys map[string]string) (string, object, error) {
	o, err := objectOf(r)
	if err != nil {
		return "", nil, err
	}
	kind, err := o.text("type")
	if err != nil {
		return "", nil, err
	}
	known, ok := keys[kind]
	if !ok {
		return "", nil, fmt.Errorf("type %.30q is not supported", kind)
	}
	if o, err = objectOf(r, append(strings.Fields(known), "type")...); err != nil {
		return "", nil, about(kind, err)
	}
	return kind, o, nil
}

// sequence reads the parts of a sequence.
func sequence(o object, key string, depth int, part func(raw) error) error {
	if depth == maxNesting {
		return fmt.Errorf("more than %d sequences inside each other", maxNesting)
	}
	if err := o.need(key); err != nil {
		return err
	}
	n := 0
	return items(o[key], func(r raw) error {
		if n++; n > maxParts {
			return fmt.Errorf("more than %d parts", maxParts)
		}
		return part(r)
	})
}

var normalizers = map[string]string{
	"Sequence": "normalizers", "NFC": "", "NFD": "", "NFKC": "", "NFKD": "", "Lowercase": "", "StripAccents": "", "Nmt": "",
	"BertNormalizer": "clean_text handle_chinese_chars strip_accents lowercase", "Replace": "pattern content", "Prepend": "prepend", "Strip": "strip_left strip_right",
	"Precompiled": "precompiled_charsmap",
}

var plainNormalizers = map[string]normalize.Normalizer{
	"NFC": normalize.NFC, "NFD": normalize.NFD, "NFKC": normalize.NFKC, "NFKD": normalize.NFKD,
	"Lowercase": normalize.Lowercase{}, "StripAccents": normalize.StripAccents{}, "Nmt": normalize.Nmt{},
}

func readNormalizers(r raw, out normalize.Sequence, depth int) (normalize.Sequence, error) {
	kind, o, err := partOf(r, normalizers)
	if err != nil {
		return nil, err
	}
	if kind == "Sequence" {
		err := sequence(o, "normalizers", depth, func(r raw) (err error) {
			out, err = readNormalizers(r, out, depth+1)
			return err
		})
		return out, err
	}
	if len(out) == maxParts {
		return nil, fmt.Errorf("more than %d parts", maxParts)
	}
	n, err := readNormalizer(kind, o)
	return append(out, n), about(kind, err)
}

func readNormalizer(kind string, o object) (normalize.Normalizer, error) {
	if n, ok := plainNormalizers[kind]; ok {
		return n, nil
	}
	switch kind {
	case "BertNormalizer":
		var b normalize.Bert
		if err := errors.Join(o.need("clean_text", "handle_chinese_chars", "lowercase"), o.flags(map[string]*bool{
			"clean_text": &b.Clean, "handle_chinese_chars": &b.Chinese, "lowercase": &b.Lowercase,
		})); err != nil {
			return nil, err
		}
		var err error
		b.Accents, err = o.flag("strip_accents", b.Lowercase)
		return b, err
	case "Precompiled":
		return readCharsmap(o)
	case "Replace":
		return readReplace(o)
	case "Prepend":
		text, err := o.text("prepend")
		return normalize.Prepend{Text: text}, errors.Join(err, o.need("prepend"))
	default:
		var s normalize.Strip
		err := o.flags(map[string]*bool{"strip_left": &s.Left, "strip_right": &s.Right})
		return s, errors.Join(err, o.need("strip_left", "strip_right"))
	}
}

// readCharsmap reads a character map in base 64.
func readCharsmap(o object) (normalize.Normalizer, error) {
	text, err := o.text("precompiled_charsmap")
	if err != nil {
		return nil, err
	}
	charsmap, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, about("precompiled_charsmap", err)
	}
	return normalize.NewPrecompiled(charsmap)
}

// readPattern reads {"String": …} or {"Regex": …}.
func readPattern(o object) (text string, regex bool, err error) {
	if err := o.need("pattern"); err != nil {
		return "", false, err
	}
	p, err := objectOf(o["pattern"], "String", "Regex")
	if err != nil {
		return "", false, about("pattern", err)
	}
	if regex = p.has("Regex"); regex == p.has("String") {
		return "", false, errors.New("pattern: want either String or Regex")
	}
	if regex {
		text, err = p.text("Regex")
	} else {
		text, err = p.text("String")
	}
	if text == "" && err == nil {
		err = errors.New("pattern: it is empty")
	}
	return text, regex, err
}

func readReplace(o object) (n normalize.Replace, err error) {
	text, regex, err := readPattern(o)
	if err == nil {
		n.New, err = o.text("content")
	}
	if err == nil {
		err = o.need("content")
	}
	if err != nil || !regex {
		n.Old = text
		return n, err
	}
	if n.Pattern, err = pattern.Compile(text); err == nil && n.Pattern.CanBeEmpty() {
		err = errors.New("the regular expression to replace matches nothing too")
	}
	return n, err
}

var splitters = map[string]string{
	"Sequence": "pretokenizers", "ByteLevel": "add_prefix_space trim_offsets use_regex", "Split": "pattern behavior invert", "Whitespace": "", "WhitespaceSplit": "",
	"Digits": "individual_digits", "Punctuation": "behavior", "Metaspace": "replacement add_prefix_space prepend_scheme split str_rep", "BertPreTokenizer": "",
	"CharDelimiterSplit": "delimiter",
}

func readSplitters(r raw, out []split.Splitter, depth int) ([]split.Splitter, error) {
	kind, o, err := partOf(r, splitters)
	if err != nil {
		return nil, err
	}
	if kind == "Sequence" {
		err := sequence(o, "pretokenizers", depth, func(r raw) (err error) {
			out, err = readSplitters(r, out, depth+1)
			return err
		})
		return out, err
	}
	if len(out) == maxParts {
		return nil, fmt.Errorf("more than %d parts", maxParts)
	}
	s, err := readSplitter(kind, o)
	return append(out, s), about(kind, err)
}

func readSplitter(kind string, o object) (split.Splitter, error) {
	switch kind {
	case "ByteLevel":
		l := split.ByteLevel{Regex: true}
		err := o.flags(map[string]*bool{"add_prefix_space": &l.PrefixSpace, "use_regex": &l.Regex})
		return l, errors.Join(err, o.need("add_prefix_space"))
	case "Split":
		return readSplit(o)
	case "Whitespace":
		return split.Whitespace{}, nil
	case "WhitespaceSplit":
		return split.WhitespaceSplit{}, nil
	case "BertPreTokenizer":
		return split.Bert{}, nil
	case "Digits":
		d := split.Digits{}
		err := o.flags(map[string]*bool{"individual_digits": &d.Individual})
		return d, errors.Join(err, o.need("individual_digits"))
	case "Punctuation":
		if !o.has("behavior") {
			return split.Punctuation{}, nil
		}
		b, err := readBehavior(o)
		return split.Punctuation{Behavior: b}, err
	case "CharDelimiterSplit":
		text, err := o.text("delimiter")
		if err == nil && utf8.RuneCountInString(text) != 1 {
			err = errors.New("delimiter: want one character")
		}
		return split.Text{Delimiter: text, Behavior: split.Removed}, err
	default:
		sign, scheme, err := readMetaspace(o)
		if err != nil {
			return nil, err
		}
		cuts, err := o.flag("split", true)
		return split.Metaspace{Sign: sign, Scheme: scheme, Whole: !cuts}, err
	}
}

func readBehavior(o object) (split.Behavior, error) {
	name, err := o.text("behavior")
	if err != nil {
		return 0, err
	}
	return split.BehaviorOf(name)
}

func readSplit(o object) (split.Splitter, error) {
	text, regex, err := readPattern(o)
	if err == nil {
		err = o.need("behavior", "invert")
	}
	if err != nil {
		return nil, err
	}
	b, err := readBehavior(o)
	if err != nil {
		return nil, err
	}
	invert, err := o.flag("invert", false)
	if err != nil {
		return nil, err
	}
	if !regex {
		return split.Text{Delimiter: text, Behavior: b, Invert: invert}, nil
	}
	return split.NewRegex(text, b, invert)
}

func readMetaspace(o object) (string, split.Scheme, error) {
	sign, err := o.text("replacement")
	if err != nil {
		return "", 0, err
	}
	if utf8.RuneCountInString(sign) != 1 {
		return "", 0, errors.New("replacement: want one character")
	}
	scheme := split.Always
	if o.has("prepend_scheme") {
		name, err := o.text("prepend_scheme")
		if err != nil {
			return "", 0, err
		}
		if scheme, err = split.SchemeOf(name); err != nil {
			return "", 0, err
		}
	}
	prefix, err := o.flag("add_prefix_space", true)
	if err == nil && !prefix {
		if o.has("prepend_scheme") && scheme != split.Never {
			err = errors.New("add_prefix_space contradicts prepend_scheme")
		}
		scheme = split.Never
	}
	return sign, scheme, err
}

var processors = map[string]string{
	"Sequence": "processors", "ByteLevel": "add_prefix_space trim_offsets use_regex", "TemplateProcessing": "single pair special_tokens",
	"BertProcessing": "sep cls", "RobertaProcessing": "sep cls trim_offsets add_prefix_space",
}

// readProcessor reads what is put around a text.
func readProcessor(r raw, s *Spec, depth int) error {
	kind, o, err := partOf(r, processors)
	if err != nil {
		return err
	}
	if kind == "Sequence" {
		return sequence(o, "processors", depth, func(r raw) error { return readProcessor(r, s, depth+1) })
	}
	if kind == "ByteLevel" { // is about places in the text alone
		return nil
	}
	if len(s.Before)+len(s.After) > 0 {
		return fmt.Errorf("%s behind another processor that adds tokens is not supported", kind)
	}
	if kind == "TemplateProcessing" {
		return about(kind, readTemplate(o, s))
	}
	cls, err := readNamedID(o, "cls")
	if err != nil {
		return err
	}
	sep, err := readNamedID(o, "sep")
	s.Before, s.After = []int32{cls}, []int32{sep}
	return err
}

// readNamedID reads ["[CLS]", 101].
func readNamedID(o object, key string) (id int32, err error) {
	if err := o.need(key); err != nil {
		return 0, err
	}
	v := &scanner{b: o[key]}
	part := 0
	err = v.list('[', ']', func() error {
		if part++; part == 1 {
			_, err := v.text()
			return err
		}
		n, err := v.integer(model.MaxTokens - 1)
		id = int32(n)
		return err
	})
	if err == nil && part != 2 {
		err = errors.New("want a token and its id")
	}
	return id, about(key, err)
}

// readTemplate reads the template of one text.
func readTemplate(o object, s *Spec) error {
	if err := o.need("single", "special_tokens"); err != nil {
		return err
	}
	tokens := map[string][]int32{}
	v := &scanner{b: o["special_tokens"]}
	if err := v.object(func(name string) error {
		r, err := v.value()
		if err != nil {
			return err
		}
		if _, twice := tokens[name]; twice || len(tokens) == maxKeys {
			return fmt.Errorf("given twice, or more than %d", maxKeys)
		}
		tokens[name], err = readIDs(r)
		return err
	}); err != nil {
		return about("special_tokens", err)
	}
	texts := 0
	err := items(o["single"], func(r raw) error {
		piece, err := objectOf(r, "Sequence", "SpecialToken")
		if err != nil || len(piece) != 1 {
			return errors.Join(err, errors.New("want Sequence or SpecialToken"))
		}
		for kind, r := range piece {
			p, err := objectOf(r, "id", "type_id")
			if err != nil {
				return err
			}
			id, err := p.text("id")
			switch ids, ok := tokens[id]; {
			case err != nil:
				return err
			case kind == "Sequence" && id == "A":
				texts++
			case kind == "Sequence" || !ok:
				return fmt.Errorf("%.30q is not among the special tokens, or no text", id)
			case texts == 0:
				s.Before = append(s.Before, ids...)
			default:
				s.After = append(s.After, ids...)
			}
		}
		if len(s.Before)+len(s.After) > maxKeys {
			return fmt.Errorf("more than %d special tokens", maxKeys)
		}
		return nil
	})
	if err == nil && texts != 1 {
		err = fmt.Errorf("the template has the text %d times, which is not supported", texts)
	}
	return about("single", err)
}

func readIDs(r raw) (out []int32, err error) {
	o, err := objectOf(r, "id", "ids", "tokens")
	if err == nil {
		err = o.need("ids")
	}
	if err != nil {
		return nil, err
	}
	err = items(o["ids"], func(r raw) error {
		s := &scanner{b: r}
		n, err := s.integer(model.MaxTokens - 1)
		if out = append(out, int32(n)); len(out) > maxKeys {
			return fmt.Errorf("more than %d ids", maxKeys)
		}
		return err
	})
	return out, err
}

var decoders = map[string]string{
	"Sequence": "decoders", "ByteLevel": "add_prefix_space trim_offsets use_regex", "WordPiece": "prefix cleanup", "BPEDecoder": "suffix",
	"Metaspace": "replacement add_prefix_space prepend_scheme split str_rep", "ByteFallback": "", "Fuse": "", "Strip": "content start stop", "Replace": "pattern content",
}

func readDecoders(r raw, out []decode.Decoder, depth int) ([]decode.Decoder, error) {
	kind, o, err := partOf(r, decoders)
	if err != nil {
		return nil, err
	}
	if kind == "Sequence" {
		err := sequence(o, "decoders", depth, func(r raw) (err error) {
			out, err = readDecoders(r, out, depth+1)
			return err
		})
		return out, err
	}
	if len(out) == maxParts {
		return nil, fmt.Errorf("more than %d parts", maxParts)
	}
	d, err := readDecoder(kind, o)
	return append(out, d), about(kind, err)
}

func readDecoder(kind string, o object) (decode.Decoder, error) {
	switch kind {
	case "ByteLevel":
		return decode.ByteLevel{}, nil
	case "ByteFallback":
		return decode.ByteFallback{}, nil
	case "Fuse":
		return decode.Fuse{}, nil
	case "WordPiece":
		prefix, err := o.text("prefix")
		if err != nil {
			return nil, err
		}
		cleanup, err := o.flag("cleanup", false)
		return decode.WordPiece{Prefix: prefix, Cleanup: cleanup}, errors.Join(err, o.need("prefix", "cleanup"))
	case "BPEDecoder":
		suffix, err := o.text("suffix")
		if err == nil && suffix == "" {
			err = errors.New("suffix: it is empty")
		}
		return decode.BPE{Suffix: suffix}, err
	case "Metaspace":
		sign, scheme, err := readMetaspace(o)
		return decode.Metaspace{Sign: sign, Scheme: scheme}, err
	case "Replace":
		r, err := readReplace(o)
		return decode.Replace{Replace: r}, err
	default:
		text, err := o.text("content")
		r, n := utf8.DecodeRuneInString(text)
		if err != nil || n == 0 || n != len(text) {
			return nil, errors.Join(err, errors.New("content: want one character"))
		}
		start, err := o.integer("start", maxKeys, 0)
		if err != nil {
			return nil, err
		}
		stop, err := o.integer("stop", maxKeys, 0)
		return decode.Strip{Content: r, Start: start, Stop: stop}, err
	}
}
