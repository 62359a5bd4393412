package wire

import (
	"fmt"
	"strings"
	"time"
)

// Moment is a protocol time in ms as people read it, in UTC.
func Moment(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

// NameOf is a member of an enumeration of one word as people read it: of STATUS_NO_QUORUM, no_quorum.
func NameOf(member fmt.Stringer) string {
	text := member.String()
	if _, name, found := strings.Cut(text, "_"); found {
		text = name
	}
	return strings.ToLower(text)
}

// UtText writes computing power, in 10⁻⁶ ut, for people.
func UtText(micro uint64) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%d.%06d", micro/1_000_000, micro%1_000_000), "0"), ".") + " ut"
}
