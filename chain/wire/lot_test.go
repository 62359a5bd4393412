package wire_test

import (
	"strings"
	"testing"

	"github.com/tally-network/tally/chain/wire"
)

func TestLotsAreReadAsTheyAreWritten(t *testing.T) {
	for text, says := range map[string]string{
		"C:5000@800": "", "C:1@1": "", "C:0@1": "from 1", "C:1@0": "", "C:1": "write it like", "C@1:1": "write it like",
		":1@1": "write it like", "C:-1@1": "write it like", "C:9999999999999@1": "from 1",
	} {
		l, err := wire.ParseLot(text)
		switch {
		case says == "" && (err != nil || wire.LotText(l) != text):
			t.Errorf("%s: %+v, %v", text, l, err)
		case says != "" && (err == nil || !strings.Contains(err.Error(), says)):
			t.Errorf("%s: %v", text, err)
		}
	}
	all, err := wire.ParseLots([]string{"C:1@2", "A:3@4"})
	if err != nil || len(all) != 2 || all[0].Tier != "A" {
		t.Errorf("%v, %v", all, err)
	}
	all[0].Ask = 0
	if text := wire.LotsText(all); text != "3 GFLOP of tier A for a sealed price, 1 GFLOP of tier C for 2 utally each or more" || wire.LotsText(nil) != "nothing" {
		t.Error(text)
	}
	if _, err := wire.ParseLots([]string{"C:1@2", "C:3@4"}); err == nil {
		t.Error("one tier is sold twice")
	}
}
