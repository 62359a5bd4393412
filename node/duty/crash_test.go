package duty_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/tally-network/tally/internal/testkit/nettest"
	"github.com/tally-network/tally/node/consume"
)

// crashing is a network whose order has a cheater in it, so that it can be
// killed in a dispute too.
var crashing = nettest.Options{
	Spec: func(s *consume.Spec) { s.Conditions.AuditSegments = 2 },
	Bend: map[string]nettest.Bend{
		"provider-1": {Wrong: func(r nettest.Run) bool { return !r.Merge && r.Round == 0 && r.Step == 2 }},
	},
}

func TestMain(m *testing.M) { nettest.Main(m, crashing) }

// TALLY_SOAK asks for more kills.
const soak = "TALLY_SOAK"

// A network that is killed at any moment goes on with its order when it starts
// again; nobody is paid twice, and the result is the same.
func TestKilledNetworkFinishesItsOrder(t *testing.T) {
	kills, seed := 3, uint64(time.Now().UnixNano())
	switch n, err := strconv.Atoi(os.Getenv(soak)); {
	case err == nil && n > 0:
		kills = n
	case testing.Short():
		t.Skip("takes half a minute")
	default:
		t.Parallel()
	}
	t.Logf("%d kills, seed %d", kills, seed)
	nettest.Crash(t, kills, seed)
}
