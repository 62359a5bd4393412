package e2e_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/tally-network/tally/internal/testkit/nettest"
	"github.com/tally-network/tally/node/consume"
	"github.com/tally-network/tally/node/devnet"
)

// crashing are networks whose orders have a cheater in them, so that they can be
// killed in a dispute too; in one of them attempts are forced.
var crashing = map[string]nettest.Options{
	"cheated": cheated(func(*devnet.Config) {}),
	"forced":  cheated(often),
}

func cheated(config func(*devnet.Config)) nettest.Options {
	return nettest.Options{
		Config: config,
		Spec: func(s *consume.Spec) {
			s.Conditions.Assurance.Audit = &consume.SpecAudit{Auditors: 1, Segments: 2}
			s.Conditions.MaxPrice *= 10
			// A network that was killed needs seconds before its roles look at anything.
			s.Conditions.Window, s.Conditions.UnitTimeout = consume.Duration(5*time.Second), consume.Duration(time.Minute)
		},
		Bend: map[string]nettest.Bend{
			"provider-1": {Wrong: func(r nettest.Run) bool { return !r.Merge && r.Round == 0 && r.Step == 2 }},
		},
	}
}

func TestMain(m *testing.M) {
	if text := os.Getenv(soakPart); text != "" {
		os.Exit(runPart(text))
	}
	nettest.Main(m, crashing)
}

// TALLY_SOAK asks for more kills.
const soak = "TALLY_SOAK"

// A network that is killed at any moment goes on with its order when it starts
// again; nobody is paid twice, no work counts twice, and the result is the same.
func TestKilledNetworkFinishesItsOrder(t *testing.T) {
	for name := range crashing {
		t.Run(name, func(t *testing.T) {
			kills, seed := 3, uint64(time.Now().UnixNano())
			switch n, err := strconv.Atoi(os.Getenv(soak)); {
			case err == nil && n > 0:
				kills = n
			case testing.Short():
				t.Skip("takes half a minute")
			case name == "forced":
				nettest.Rare(t)
				t.Parallel()
			default:
				t.Parallel()
			}
			t.Logf("%d kills, seed %d", kills, seed)
			nettest.Crash(t, name, kills, seed)
		})
	}
}
