package address

import (
	"strings"
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
)

func TestParse(t *testing.T) {
	acc := sdk.AccAddress(strings.Repeat("\x07", 20))
	text := acc.String()
	if !strings.HasPrefix(text, Prefix+"1") {
		t.Fatalf("%s has another prefix", text)
	}
	back, err := Parse(text)
	if err != nil || !back.Equals(acc) {
		t.Fatalf("%v, %v", back, err)
	}
	for name, bad := range map[string]string{
		"empty":        "",
		"upper case":   strings.ToUpper(text),
		"checksum":     text[:len(text)-1] + "b",
		"other prefix": "cosmos1qqqsyqcyq5rqwzqfpg9scrgwpugpzysnrujsuw",
		"spaces":       " " + text,
		"last bits":    "tally1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqp3ehqur", // the account of 19 zeros has another
		"long":         text + strings.Repeat("q", 1000),
	} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("%s: %q was taken", name, bad)
		}
	}
}

// Whatever is taken is what would be written.
func FuzzParse(f *testing.F) {
	f.Add(sdk.AccAddress(strings.Repeat("\x07", 20)).String())
	f.Add(sdk.AccAddress("odd").String())
	f.Fuzz(func(t *testing.T, text string) {
		if a, err := Parse(text); err == nil && a.String() != text {
			t.Fatalf("%q is %q", text, a.String())
		}
	})
}

// The account of the policy is the one that the SDK gives a module of that name.
func TestPolicyIsAModulesAccount(t *testing.T) {
	if got, want := Policy(), authtypes.NewModuleAddress(PolicyName); !got.Equals(want) {
		t.Errorf("%s, want %s", got, want)
	}
}
