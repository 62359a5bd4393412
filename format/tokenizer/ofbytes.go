package tokenizer

import (
	"fmt"
	"strings"

	"github.com/tally-network/tally/format/tokenizer/split"
)

// OfBytes returns the tokenizer.json that has a token for each byte of UTF-8, whose number is the byte's. Hugging Face's
// library reads it, too.
func OfBytes() []byte {
	var names []string
	for b := range 256 {
		names = append(names, fmt.Sprintf("%q:%d", string(split.ByteRune(byte(b))), b))
	}
	return fmt.Appendf(nil, `{"version":"1.0","added_tokens":[],"normalizer":null,`+
		`"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false},"post_processor":null,`+
		`"decoder":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false},`+
		`"model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,"vocab":{%s},"merges":[]}}`+"\n",
		strings.Join(names, ","))
}
