package tokenizer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// answer is what the reference says of a text.
type answer struct {
	IDs     []int32
	Special []int32
	Text    string
	Skipped string
}

type answers struct {
	Texts    []string
	Families []struct {
		Name    string
		Answers []answer
	}
}

func readAnswers(t testing.TB) (a answers) {
	t.Helper()
	b, err := os.ReadFile("testdata/answers.json")
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	if err != nil || len(a.Families) < 10 {
		t.Fatal(err, "run testdata/make.py")
	}
	return a
}

func family(t testing.TB, name string) *Tokenizer {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := Parse(b)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return tok
}

// differs says in what a tokenizer differs from the reference.
func differs(tok *Tokenizer, text string, want answer) string {
	ids, err := tok.Encode(text, false)
	if err != nil || !slices.Equal(ids, want.IDs) {
		return fmt.Sprintf("encoded %+q as\n%v (%v), want\n%v", text, ids, err, want.IDs)
	}
	if ids, err = tok.Encode(text, true); err != nil || !slices.Equal(ids, want.Special) {
		return fmt.Sprintf("encoded %+q with special tokens as\n%v (%v), want\n%v", text, ids, err, want.Special)
	}
	for _, skip := range []bool{false, true} {
		decoded := want.Text
		if skip {
			decoded = want.Skipped
		}
		if got, err := tok.Decode(ids, skip); err != nil || got != decoded {
			return fmt.Sprintf("decoded %v as\n%+q (%v), want\n%+q", ids, got, err, decoded)
		}
		s := tok.Stream(skip)
		var all strings.Builder
		for _, id := range ids {
			part, err := s.Push(id)
			if err != nil || !utf8.ValidString(part) {
				return fmt.Sprintf("streamed %+q (%v)", part, err)
			}
			all.WriteString(part)
		}
		rest, err := s.Flush()
		if all.WriteString(rest); err != nil || all.String() != decoded {
			return fmt.Sprintf("streamed %v as\n%+q (%v), want\n%+q", ids, all.String(), err, decoded)
		}
	}
	return ""
}

// Every family gives the reference's ids and texts.
func TestAnswers(t *testing.T) {
	all := readAnswers(t)
	for _, f := range all.Families {
		tok := family(t, f.Name)
		if len(f.Answers) != len(all.Texts) {
			t.Fatalf("%s: %d answers to %d texts", f.Name, len(f.Answers), len(all.Texts))
		}
		for i, want := range f.Answers {
			if d := differs(tok, all.Texts[i], want); d != "" {
				t.Errorf("%s: %s", f.Name, d)
			}
		}
	}
}

// pieces are what random texts are made of, besides characters drawn from all of Unicode.
var pieces = []string{
	"the", "The", " the", "ing", "er", " ", "  ", "\n", "\r\n", "\t", "1", "23", "456", "½", "٣", "'s", "'LL", "'ſ", "’", ".", ",", "!?", "()", "[]", "{}", "_", "-",
	"é", "e\u0301", "ß", "İ", "中", "日本", "한", "語", "क्षि", "สำ", "я", "Ж", "א", "ع", "🙂", "👨\u200d👩\u200d👧", "🇩🇪", "❤️", "\u200b", "\u00a0", "\u3000", "\u2028", "\x00", "\u0085",
	"<s>", "</s>", "<unk>", "<mask>", "<mas", "[CLS]", "[MASK]", "<|endoftext|>", "<|im_start|>", "<0x41>", "▁", "Ġ", "##", "</w>", "alpha", "ALPHA", "Straße", "x", "y", "a", "A", "\ufffd",
	"\u0323", "\u0f71\u0f72", "ﬁ", "①", "㋿", "\u1112\u1161\u11ab", "\U00011935\U00011930", "\U00011938", "\u1c89", "\ua7f2", "\U0001e900",
	"ª", "º", "Ⅷ", "\u00ad", "\u0897", "\u1ae0", "\u0600", "\u0903", "A\U00011f5a", "\u0301",
}

func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(16) {
		switch r.IntN(8) {
		case 0:
			c := rune(r.IntN(0x3000))
			if r.IntN(4) == 0 {
				c = rune(r.IntN(0x110000))
			}
			if utf8.ValidRune(c) {
				b.WriteRune(c)
			}
		case 1:
			b.WriteRune(rune(' ' + r.IntN(95)))
		default:
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
	}
	return b.String()
}

// randomIDs draws tokens, many of them of single bytes.
func randomIDs(r *rand.Rand, tok *Tokenizer) []int32 {
	out := []int32{}
	for range 1 + r.IntN(12) {
		id := int32(r.IntN(tok.Size()))
		if r.IntN(3) == 0 {
			id = int32(r.IntN(min(tok.Size(), 270)))
		}
		if _, ok := tok.Token(id); ok {
			out = append(out, id)
		}
	}
	return out
}

// decodesOtherwise says in what a decoding differs from the reference's.
func decodesOtherwise(tok *Tokenizer, ids []int32, want answer) string {
	for _, skip := range []bool{false, true} {
		text := want.Text
		if skip {
			text = want.Skipped
		}
		if got, err := tok.Decode(ids, skip); err != nil || got != text {
			return fmt.Sprintf("decoded %v as\n%+q (%v), want\n%+q", ids, got, err, text)
		}
	}
	return ""
}

// TestRandomTexts compares with the reference itself, in the Python that TALLY_PYTHON names, which
// has PyPI's tokenizers. TALLY_TEXTS says how many texts.
func TestRandomTexts(t *testing.T) {
	python := os.Getenv("TALLY_PYTHON")
	if python == "" || exec.Command(python, "-c", "import tokenizers").Run() != nil {
		t.Skip("TALLY_PYTHON names no Python with tokenizers")
	}
	n, _ := strconv.Atoi(os.Getenv("TALLY_TEXTS"))
	if n == 0 {
		n = 100_000
	}
	r := rand.New(rand.NewPCG(7, 11))
	all := readAnswers(t)
	toks := map[string]*Tokenizer{}
	for _, f := range all.Families {
		toks[f.Name] = family(t, f.Name)
	}
	var in bytes.Buffer
	names, texts, ids := make([]string, n), make([]string, n), make([][]int32, n)
	for i := range n {
		names[i], texts[i] = all.Families[i%len(all.Families)].Name, randomText(r)
		question := []any{names[i], texts[i]}
		if r.IntN(4) == 0 {
			ids[i] = randomIDs(r, toks[names[i]])
			question[1] = ids[i]
		}
		line, err := json.Marshal(question)
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(line, '\n'))
	}
	cmd := exec.Command(python, "testdata/make.py", "answer")
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<24)
	wrong := map[string]int{}
	for i := range n {
		var want answer
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &want) != nil {
			t.Fatalf("%d answers to %d texts", i, n)
		}
		d := ""
		if ids[i] != nil {
			d = decodesOtherwise(toks[names[i]], ids[i], want)
		} else {
			d = differs(toks[names[i]], texts[i], want)
		}
		if d != "" {
			if wrong[names[i]]++; wrong[names[i]] <= 3 {
				t.Errorf("%s: %s", names[i], d)
			}
		}
	}
	t.Logf("%d texts, of which differ %v", n, wrong)
}

// Several goroutines may use one tokenizer.
func TestConcurrentUse(t *testing.T) {
	all := readAnswers(t)
	for _, f := range all.Families[:4] {
		tok := family(t, f.Name)
		done := make(chan string)
		for range 8 {
			go func() {
				for i, want := range f.Answers {
					if d := differs(tok, all.Texts[i], want); d != "" {
						done <- d
						return
					}
				}
				done <- ""
			}()
		}
		for range 8 {
			if d := <-done; d != "" {
				t.Errorf("%s: %s", f.Name, d)
			}
		}
	}
}

// The bytes of tokens are, joined, those of their text, where a tokenizer has bytes of tokens alone.
func TestBytesOfTokens(t *testing.T) {
	looksAround := []string{"albert", "bert-cased", "bert-uncased", "clip", "odd", "t5", "xlnet"} // their decoders do
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if name == filepath.Join("testdata", "answers.json") {
			continue
		}
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tok, err := Parse(file)
		if err != nil {
			t.Fatal(err)
		}
		first, err := tok.Encode("x", false) // so that the text has begun
		if err != nil || len(first) == 0 {
			t.Fatalf("%s: %v", name, err)
		}
		before, err := tok.Decode(first, false)
		if err != nil {
			t.Fatal(err)
		}
		known := false
		for _, text := range []string{`{"name": "Zoë", "n": [1, 2.5, null]}`, "a  b\n\tc", "naïve – 日本 😀", "x.y, z's", "the a"} {
			ids, err := tok.Encode(text, false)
			if err != nil {
				t.Fatal(err)
			}
			var added []byte
			all := true
			for _, id := range ids {
				b, ok := tok.Bytes(id)
				all = all && ok
				added = append(added, b...)
			}
			if known = known || all; !all {
				continue
			}
			got, err := tok.Decode(append(first[:len(first):len(first)], ids...), false)
			if err != nil || before+string(added) != got {
				t.Errorf("%s: %q is of bytes %q: %v", name, got, before+string(added), err)
			}
		}
		if family := strings.TrimSuffix(filepath.Base(name), ".json"); !known && !slices.Contains(looksAround, family) {
			t.Errorf("the bytes of %s's tokens are not known", family)
		}
		for _, id := range []int32{-1, int32(tok.Size())} {
			if b, ok := tok.Bytes(id); ok {
				t.Errorf("%s: token %d has bytes %q", name, id, b)
			}
		}
	}
}

func TestTokensOfBytesAreBytes(t *testing.T) {
	of, err := Parse(OfBytes())
	if err != nil {
		t.Fatal(err)
	}
	text := "a \"ä\\\n\x00€😀  b\t"
	ids, err := of.Encode(text, true)
	if err != nil {
		t.Fatal(err)
	}
	var back []byte
	for _, id := range ids {
		back = append(back, byte(id))
	}
	decoded, err := of.Decode(ids, false)
	if string(back) != text || decoded != text || err != nil || of.Size() != 256 {
		t.Errorf("%q are tokens %d, which are %q (%v)", text, ids, decoded, err)
	}
}
