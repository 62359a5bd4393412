package seat

import (
	"strings"
	"testing"

	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
)

// Who had no seats was not told why.
func TestWhyAMemberHasNoSeats(t *testing.T) {
	p := &seatsv1.Params{BondPerSeat: 10_000_000}
	const epoch, perSeat = 7, 1_500_000
	member := func(change func(m *seatsv1.Member)) *seatsv1.Member {
		m := &seatsv1.Member{Status: seatsv1.STATUS_ACTIVE, Bond: 10_000_000, FromEpoch: 3, BondEpoch: 2}
		change(m)
		return m
	}
	for name, x := range map[string]struct {
		member *seatsv1.Member
		power  uint64
		want   string // starts the reason
	}{
		"has some":            {member(func(m *seatsv1.Member) { m.Votes = 1 }), 0, ""},
		"signed twice":        {member(func(m *seatsv1.Member) { m.Status = seatsv1.STATUS_TOMBSTONED }), 0, "it signed twice"},
		"left":                {member(func(m *seatsv1.Member) { m.Status, m.Bond = seatsv1.STATUS_LEFT, 0 }), 0, "it has left; tally tx seats join"},
		"jailed":              {member(func(m *seatsv1.Member) { m.Status = seatsv1.STATUS_JAILED }), 0, "it missed too many blocks; tally tx seats unjail"},
		"new":                 {member(func(m *seatsv1.Member) { m.FromEpoch = 9 }), 9_000_000, "draws count it from epoch 9 on"},
		"small bond":          {member(func(m *seatsv1.Member) { m.Bond-- }), 9_000_000, "a seat takes a bond of 10 TALLY"},
		"bonded in the epoch": {member(func(m *seatsv1.Member) { m.BondEpoch = 7 }), 9_000_000, "draws count its bond from epoch 8 on"},
		"no power":            {member(func(*seatsv1.Member) {}), 0, "a seat takes power of 1.5 ut"},
		"too little power":    {member(func(*seatsv1.Member) {}), perSeat - 1, "a seat takes power of 1.5 ut"},
		"enough":              {member(func(*seatsv1.Member) {}), perSeat, "the next draw"},
	} {
		if got := why(p, x.member, epoch, x.power, perSeat); !strings.HasPrefix(got, x.want) || (got == "") != (x.want == "") {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}
