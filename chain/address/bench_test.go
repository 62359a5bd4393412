package address

import (
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"
)

// Every message and every effect of a lease names accounts.
func BenchmarkParse(b *testing.B) {
	text := sdk.AccAddress(make([]byte, 20)).String()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}
