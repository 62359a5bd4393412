package reply

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tally-network/tally/format/tokenizer"
	"github.com/tally-network/tally/model/lm"
)

// Models has models by name.
type Models interface {
	// List returns what can be asked for.
	List(ctx context.Context) ([]Listing, error)
	// Open returns a model, ready to reply. It stays ready for a while after its last reply; keep says how long, if it is not nil,
	// and a negative time is for ever. The error is an [api.Fault] if the client can do something about it, as [Unknown] is.
	Open(ctx context.Context, name string, keep *time.Duration) (*Model, error)
	// Loaded returns the models that are ready now.
	Loaded(ctx context.Context) ([]Loaded, error)
	// Pull fetches a model. It tells how far it is.
	Pull(ctx context.Context, name string, tell func(Progress)) error
}

// Drafts are Models that draft tokens: speculative decoding.
type Drafts interface {
	// Drafts returns how many tokens were drafted so far, and how many of them were drawn.
	Drafts() (drafted, accepted int64)
}

// Listing is what people see of a model before they ask it.
type Listing struct {
	Name     string
	Digest   string // of its files, in hexadecimal
	Size     int64  // of its files, in bytes
	Modified time.Time
	Context  int  // tokens of a prompt and its reply
	Replies  bool // and not only embeds
	Tools    bool // its template knows them
	Embeds   bool
	Details  Details
}

// Details are words about a model. Those that are empty are not known.
type Details struct {
	Format       string // "gguf", "safetensors"
	Family       string
	Parameters   string // "135M"
	Quantization string // "Q4_1"
	License      string
	Template     string // for chats
}

// Loaded is a model that is ready.
type Loaded struct {
	Listing
	Memory int64     // bytes
	Until  time.Time // zero: for ever
}

// Progress is how far fetching is, in bytes.
type Progress struct {
	Status       string
	Digest       string
	Total, Ready int64
}

// Model is what answers under a name.
type Model struct {
	Listing
	Replier   lm.Replier // nil if the model only embeds
	Tokenizer *tokenizer.Tokenizer
	Prompter  Prompter // nil if the model does not chat
	Embedder  Embedder // nil if the model does not embed
	Ends      []int32  // tokens that end a reply
	Forms     *lm.Forms
}

// Prompter writes a conversation as the text of a prompt. An error is about the conversation.
type Prompter interface {
	Prompt(c *Conversation) (string, error)
}

// Embedder gives a vector for each text, which it gets as its tokens, special ones among them.
type Embedder interface {
	Embed(ctx context.Context, texts [][]int32) ([][]float32, error)
}

// Conversation is what a prompt is written from.
type Conversation struct {
	Messages []Message
	Tools    []Tool
	Date     time.Time // which templates may tell the model
	Continue bool      // the last message is the assistant's, and goes on
}

// Message is a turn of a conversation.
type Message struct {
	Role   string // "system", "user", "assistant", "tool"
	Text   string
	Calls  []Call // of an assistant
	CallID string // of a tool's answer
	Name   string // … and that tool
}

// Tool is a function that the model may call.
type Tool struct {
	Name, Description string
	Parameters        json.RawMessage // a JSON schema; nil: none
}

// Call is a call of a tool.
type Call struct {
	ID, Name  string
	Arguments json.RawMessage // an object
}
