package role

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tally-network/tally/core/canon"
)

func TestOfferAndAnswerComeBack(t *testing.T) {
	o := UnitOffer{Order: canon.Sum("order"), Unit: 3, Attempt: 2}
	if got, err := Offers.Request.Decode(Offers.Request.Encode(o)); err != nil || got != o {
		t.Errorf("%+v, %v", got, err)
	}
	a := UnitAnswer{Signature: []byte("signed"), Reason: strings.Repeat("é", MaxReason/2)}
	b := Offers.Response.Encode(a)
	if got, err := Offers.Response.Decode(b); err != nil || string(got.Signature) != "signed" || got.Reason != a.Reason {
		t.Errorf("%+v, %v", got, err)
	}
	if len(b) > Offers.MaxResponse || len(Offers.Request.Encode(o)) > Offers.MaxRequest {
		t.Errorf("an answer of %d bytes", len(b))
	}
	for _, b := range [][]byte{nil, b[:len(b)-1], append(b, 0)} {
		if _, err := Offers.Response.Decode(b); err == nil {
			t.Errorf("%d bytes are taken for an answer", len(b))
		}
	}
}

func TestClip(t *testing.T) {
	for _, s := range []string{"", "short", strings.Repeat("é", 8), strings.Repeat("x", 20), "abcdefghé€"} {
		got := Clip(s, 10)
		if len(got) > 10 || !utf8.ValidString(got) || !strings.HasPrefix(s, got) || len(s) <= 10 && got != s {
			t.Errorf("%q is cut to %q", s, got)
		}
	}
}
