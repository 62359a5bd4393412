package reply

import "github.com/tally-network/tally/model/lm"

// Bounds of one request, the same in every API.
const (
	MaxReplies   = 64      // at once, each of which is computed beside the others
	MaxMessages  = 1 << 12 // of a conversation
	MaxTools     = 128
	MaxStops     = 32 // more than OpenAI's four, as other servers allow
	MaxStopBytes = 1 << 10
	MaxBias      = 1 << 10 // tokens whose logits are changed
	MaxTexts     = 2048    // to embed at once, as OpenAI bounds them
	MaxEmbedded  = 300_000 // tokens of these texts, as OpenAI bounds them
	MaxLikeliest = lm.MaxLikeliest
)
