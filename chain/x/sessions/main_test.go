package sessions_test

import (
	"testing"

	"github.com/tally-network/tally/internal/testkit/chaintest"
)

func TestMain(m *testing.M) { chaintest.Main(m, "sessions") }
