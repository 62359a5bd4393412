package decode

import (
	"strconv"
	"strings"

	"github.com/tally-network/tally/format/tokenizer/split"
)

// Bytes returns what a token adds to a text that has begun, where that does not depend on the tokens beside it. Joined, the bytes of
// tokens are the bytes of their text. It is false for decoders that look at neighbours.
func Bytes(decoders []Decoder, token string) ([]byte, bool) {
	fused := false
	for _, d := range decoders {
		switch d := d.(type) {
		case Fuse:
		case ByteLevel:
			if bytes, ok := split.FromBytes(token); ok {
				token = bytes
			}
		case ByteFallback:
			if b, ok := fallback(token); ok {
				token = string([]byte{b})
			}
		case Metaspace:
			token = strings.ReplaceAll(token, d.Sign, " ")
		case Replace:
			text, err := d.Normalize(token)
			if err != nil || fused { // what is replaced may be spread over tokens
				return nil, false
			}
			token = text
		case Strip:
			if !fused || d.Stop > 0 {
				return nil, false
			}
		default:
			return nil, false
		}
		fused = fused || d.start(fused).fuses()
	}
	return []byte(token), len(decoders) > 0
}

// fallback returns the byte that a token stands for, as ByteFallback names it.
func fallback(token string) (byte, bool) {
	if len(token) != 6 || !strings.HasPrefix(token, "<0x") || token[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(token[3:5], 16, 8)
	return byte(b), err == nil
}
