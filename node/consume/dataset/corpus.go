package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/tally-network/tally/format/chat"
	"github.com/tally-network/tally/format/table"
	"github.com/tally-network/tally/node/consume/dataset/sequences"
)

// maxMessages bounds the messages of a chat: a template reads all of them for each reply.
const maxMessages = 1 << 10

// errNoTokenizer says what texts want.
var errNoTokenizer = fmt.Errorf("texts become tokens by a tokenizer: write data.text.tokenizer, a tokenizer.json or a model's folder, or %s", Bytes)

// corpus is a table whose records are texts or chats.
type corpus struct {
	table   *table.Table
	encoder *Encoder // nil if none is named
	learn   string   // of chats
	column  string   // that is read; "" until it is found
}

// reading returns the tokens of a record.
type reading func(record int) ([]sequences.Example, error)

func (m *maker) corpus() *corpus { return &corpus{m.table, m.encoder, m.Text.Learn, m.Target} }

// textColumn returns a column of texts or of chats, nil if there is none of a name.
func textColumn(t *table.Table, name string) *table.Column {
	c, err := t.Column(name)
	if err != nil || c.Kind != table.Text && c.Kind != table.JSON && c.Kind != table.Category {
		return nil
	}
	if c.Kind == table.Category { // few texts differ
		if c, err = c.As(table.Text); err != nil {
			return nil
		}
	}
	return c
}

// find chooses what is read: tokens, a chat, a prompt and its completion, or a text.
func (c *corpus) find(input string) (reading, error) {
	if of := c.tokens(input); of != nil {
		c.column = of.Name
		return tokensOf(of), nil
	}
	if c.encoder == nil {
		return nil, errNoTokenizer
	}
	names := []string{"messages", "conversations"}
	switch {
	case c.column != "":
		names = []string{c.column}
	case textColumn(c.table, "prompt") != nil && textColumn(c.table, "completion") != nil:
		c.column = "completion"
		return c.replies(c.column)
	default:
		names = append(names, "text")
	}
	for _, name := range names {
		if of := textColumn(c.table, name); of != nil {
			return c.texts(of), nil
		}
	}
	if c.column != "" {
		return nil, fmt.Errorf("data.target: no column %q holds texts or chats", c.column)
	}
	var found []*table.Column
	for _, of := range c.table.Columns {
		if of = textColumn(c.table, of.Name); of != nil {
			found = append(found, of)
		}
	}
	if len(found) != 1 {
		return nil, errors.New("data.target is missing: name the column that holds texts, or chats")
	}
	return c.texts(found[0]), nil
}

// tokens returns the column of texts that are tokens already, nil if there is none.
func (c *corpus) tokens(input string) *table.Column {
	for _, name := range []string{c.column, input, "tokens", "input_ids"} {
		of, err := c.table.Column(name)
		if err == nil && of.Kind == table.Array && len(of.Values.Shape) == 2 && of.Values.Type.Integer() {
			return of
		}
	}
	return nil
}

func tokensOf(c *table.Column) reading {
	n := c.Values.Shape[1]
	return func(i int) ([]sequences.Example, error) {
		s := sequences.Example{Tokens: make([]int32, n)}
		for j := range s.Tokens {
			token := int64(c.Values.At(i*n + j))
			if token < 0 || token > math.MaxInt32 {
				return nil, fmt.Errorf("column %q has %d, which is no token", c.Name, token)
			}
			s.Tokens[j] = int32(token)
		}
		return []sequences.Example{s}, nil
	}
}

// texts reads a column of texts or of chats.
func (c *corpus) texts(of *table.Column) reading {
	c.column = of.Name
	return func(i int) ([]sequences.Example, error) {
		if of.Lacks(i) {
			return nil, fmt.Errorf("column %q says nothing: leave the record out", of.Name)
		}
		if of.Kind != table.JSON {
			s, err := c.encoder.text(of.Texts.At(i))
			return []sequences.Example{s}, err
		}
		messages, err := messagesOf(of, i)
		if err != nil {
			return nil, err
		}
		return c.chat(i, messages)
	}
}

// replies reads a column that goes on where the prompt of its record ends. Of chats the last reply is learnt.
func (c *corpus) replies(name string) (reading, error) {
	if c.encoder == nil {
		return nil, errNoTokenizer
	}
	reply, prompt := textColumn(c.table, name), textColumn(c.table, "prompt")
	if reply == nil || prompt == nil && reply.Kind != table.JSON || prompt != nil && prompt.Kind != reply.Kind {
		return nil, fmt.Errorf("columns prompt and %s are both to be texts, or both chats", name)
	}
	return func(i int) ([]sequences.Example, error) {
		if reply.Lacks(i) || prompt != nil && prompt.Lacks(i) {
			return nil, fmt.Errorf("a prompt or its %s says nothing: leave the record out", name)
		}
		if reply.Kind != table.JSON {
			s, err := c.encoder.completion(prompt.Texts.At(i), reply.Texts.At(i))
			if c.learn == learnAll {
				s.LossMask = nil
			}
			return []sequences.Example{s}, err
		}
		var messages []chat.Message
		for _, of := range []*table.Column{prompt, reply} {
			if of == nil {
				continue
			}
			more, err := messagesOf(of, i)
			if err != nil {
				return nil, err
			}
			messages = append(messages, more...)
		}
		all, err := c.chat(i, messages)
		if err != nil {
			return nil, err
		}
		last := all[len(all)-1]
		forgetEarlier(last.LossMask)
		return []sequences.Example{last}, nil
	}, nil
}

// forgetEarlier leaves only the last stretch of tokens that are learnt.
func forgetEarlier(learnt []bool) {
	end := len(learnt)
	for end > 0 && !learnt[end-1] {
		end--
	}
	for end > 0 && learnt[end-1] {
		end--
	}
	clear(learnt[:end])
}

func messagesOf(c *table.Column, i int) ([]chat.Message, error) {
	all, err := chat.ReadMessages([]byte(c.Texts.At(i)))
	if err == nil && len(all) > maxMessages {
		err = fmt.Errorf("%d messages, of at most %d", len(all), maxMessages)
	}
	if err != nil {
		return nil, fmt.Errorf("column %q: %w", c.Name, err)
	}
	return all, nil
}

// chat returns the tokens of a record's chat.
func (c *corpus) chat(i int, messages []chat.Message) ([]sequences.Example, error) {
	of := &chat.Conversation{Messages: messages}
	if tools := textColumn(c.table, "tools"); tools != nil && tools.Kind == table.JSON && !tools.Lacks(i) {
		if err := json.Unmarshal([]byte(tools.Texts.At(i)), &of.Tools); err != nil {
			return nil, fmt.Errorf("column %q: %w", tools.Name, err)
		}
	}
	return c.encoder.chat(of, c.learn)
}
