package dataset

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/tally-network/tally/format/chat"
	"github.com/tally-network/tally/format/table"
	"github.com/tally-network/tally/format/tokenizer"
	"github.com/tally-network/tally/node/consume/dataset/sequences"
)

// chatML is the template of chats for a model that has none.
const chatML = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"

// What a language model that is proposed reads at once, in tokens.
const (
	leastContext = 32
	mostContext  = 512
)

// measured is how many records are read to see how long texts are.
const measured = 1 << 10

// tellsTexts reports whether texts are to be learnt from, rather than a column to be told by others.
func (m *maker) tellsTexts() bool {
	if m.Target != "" {
		c := textColumn(m.table, m.Target)
		return c != nil && (c.Kind == table.JSON || m.encoder != nil || c.Name == "text")
	}
	for _, label := range targetNames {
		if _, err := m.table.Column(label); err == nil {
			return false
		}
	}
	for _, name := range []string{"messages", "conversations", "text", "completion"} {
		if textColumn(m.table, name) != nil {
			return true
		}
	}
	return false
}

// proposeLanguage finds a language model for texts or chats.
func (m *maker) proposeLanguage() (*Proposal, error) {
	p := &Proposal{Architecture: "gpt", Settings: map[string]string{}, Loss: nextToken, Batch: 8}
	if m.encoder == nil {
		of, err := tokenizer.Parse(tokenizer.OfBytes())
		if err != nil {
			return nil, err
		}
		m.encoder, m.Text.Tokenizer = &Encoder{tokenizer: of}, Bytes
		p.because("no tokenizer is named: a token for each byte")
	}
	of := m.corpus()
	read, err := of.find("")
	if err != nil {
		return nil, err
	}
	m.Target = of.column
	c, err := m.table.Column(of.column)
	if err != nil {
		return nil, err
	}
	if c.Kind == table.JSON && m.encoder.template == nil {
		p.Template, m.Text.Template = chatML, TemplateName
		if m.encoder.template, err = chat.Parse(chatML, nil); err != nil {
			return nil, err
		}
		p.because("the tokenizer comes with no template of chats: ChatML")
	}
	lengths, tokens, err := lengthsOf(read, m.table.Records)
	if err != nil {
		return nil, err
	}
	context := min(max(1<<bits.Len(uint(lengths[len(lengths)*9/10]-1)), leastContext), mostContext)
	p.because("of %q nine in ten have at most %d tokens: gpt, which reads %d", m.Target, lengths[len(lengths)*9/10], context)
	m.Text.Pack, m.Text.Long = true, sequences.Split
	if c.Kind == table.JSON || m.Target == "completion" {
		m.Text.Long = sequences.Truncate
		p.because("of what is written, replies are learnt; what is longer is cut")
	}
	p.Data = m.Options
	if p.Data.HeldOut == (HeldOut{}) {
		p.Data.HeldOut = HeldOut{Share: 0.1}
	}
	rows := max(1, tokens/context)
	p.Batch = max(1, min(p.Batch, rows/4))
	p.Steps = max(16, min(64, 4*rows/(p.Batch*proposedRounds*proposedShards)))
	for name, v := range map[string]int{"batch": p.Batch, "vocabulary": m.encoder.tokenizer.Size(), "context": context, "width": 128, "layers": 4, "heads": 4} {
		p.set(name, v)
	}
	return p, nil
}

// lengthsOf returns the numbers of tokens of some texts, ascending, and how many all records have, about.
func lengthsOf(read reading, records int) (lengths []int, tokens int, err error) {
	seen := min(records, measured)
	for i := range seen {
		all, err := read(i)
		if err != nil {
			return nil, 0, fmt.Errorf("record %d: %w", i+1, err)
		}
		for _, s := range all {
			lengths, tokens = append(lengths, len(s.Tokens)), tokens+len(s.Tokens)
		}
	}
	slices.Sort(lengths)
	if tokens == 0 {
		return nil, 0, fmt.Errorf("the texts are empty")
	}
	return lengths, int(float64(tokens) * float64(records) / float64(seen)), nil
}
