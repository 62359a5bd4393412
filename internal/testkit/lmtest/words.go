package lmtest

import (
	"strings"

	"github.com/tally-network/tally/model/grammar"
	"github.com/tally-network/tally/model/lm"
)

// letters are what the 48 tokens of a tiny model add to a text, so that it can write JSON. The first seven add nothing, as special tokens do,
// and so does the last.
var letters = append(append(make([]string, 7), strings.Split(`{}[]",: \abcdelnrstuf01234579-.`, "")...), "true", "false", "null", `{"`, `": `, `", "`, "ab", "12")

// Words returns what the tokens of a tiny model add to a text.
func Words() *grammar.Vocabulary {
	return grammar.NewVocabulary(48, func(id int32) []byte {
		if int(id) >= len(letters) {
			return nil
		}
		return []byte(letters[id])
	})
}

// Bind lets replies of a tiny model be bound to forms.
func Bind(m *lm.Model) *lm.Model {
	m.SetForms(lm.NewForms(Words))
	return m
}

// Text returns the text of tokens.
func Text(tokens []int32) string {
	var b strings.Builder
	for _, id := range tokens {
		if int(id) < len(letters) {
			b.WriteString(letters[id])
		}
	}
	return b.String()
}

// Schemas are some that the tokens can write.
var Schemas = []string{
	`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"array","items":{"type":"boolean"},"maxItems":2}},"required":["a"],"additionalProperties":false}`,
	`{"type":"array","items":{"anyOf":[{"type":"null"},{"type":"string","maxLength":3}]},"minItems":1,"maxItems":3}`,
	`{"type":"string","pattern":"^(?:ab|c[0-5])*$"}`,
	`{"type":"number","minimum":0}`,
	`{"enum":["a","ab",1,12,null]}`,
}
