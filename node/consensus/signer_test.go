package consensus_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmtlog "github.com/cometbft/cometbft/libs/log"
	"github.com/cometbft/cometbft/privval"

	"github.com/tally-network/tally/internal/testkit/chaintest"
	"github.com/tally-network/tally/node/consensus"
)

// signer is what an operator runs on a machine of its own: the key, and what it signed last.
func signer(t *testing.T, dir, at string) {
	t.Helper()
	place := strings.TrimPrefix(strings.TrimPrefix(at, "unix://"), "tcp://")
	dial := privval.DialUnixFn(place)
	if strings.HasPrefix(at, "tcp") {
		dial = privval.DialTCPFn(place, 5*time.Second, cmted25519.GenPrivKey())
	}
	endpoint := privval.NewSignerDialerEndpoint(cmtlog.NewNopLogger(), dial, privval.SignerDialerEndpointConnRetries(1_000), privval.SignerDialerEndpointRetryWaitInterval(20*time.Millisecond))
	key := privval.LoadFilePV(filepath.Join(dir, "priv_validator_key.json"), filepath.Join(dir, "priv_validator_state.json"))
	s := privval.NewSignerServer(endpoint, chaintest.ChainID, key)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
}

// The key is moved to a signer. The node makes no other, and votes.
func TestSignerHasTheKey(t *testing.T) {
	for _, protocol := range []string{"unix", "tcp"} {
		t.Run(protocol, func(t *testing.T) {
			dir := t.TempDir()
			net := newNetwork(t, dir, 1)
			at := "unix://" + filepath.Join(dir, "signer.sock")
			if protocol == "tcp" {
				free, err := consensus.FreeAddr()
				if err != nil {
					t.Fatal(err)
				}
				at = "tcp://" + free
			}
			apart := t.TempDir()
			for from, name := range map[string]string{"config": "priv_validator_key.json", "data": "priv_validator_state.json"} {
				if err := os.Rename(filepath.Join(net.configs[0].Dir, from, name), filepath.Join(apart, name)); err != nil {
					t.Fatal(err)
				}
			}
			net.configs[0].Signer = at
			signer(t, apart, at)
			net.start(t)
			net.waitHeight(t, 3)
			if _, err := os.Stat(filepath.Join(net.configs[0].Dir, "config", "priv_validator_key.json")); !os.IsNotExist(err) {
				t.Errorf("the node made a key of its own: %v", err)
			}
		})
	}
}

// Without its signer a node does not start, and says what to do.
func TestNoSigner(t *testing.T) {
	net := newNetwork(t, t.TempDir(), 1)
	c := net.configs[0]
	c.Signer = "unix://" + filepath.Join(t.TempDir(), "signer.sock")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := consensus.Start(ctx, c); err == nil || !strings.Contains(err.Error(), "no signer at") {
		t.Errorf("%v", err)
	}
	file := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Signer = "unix://" + file
	if _, err := consensus.Start(t.Context(), c); err == nil || !strings.Contains(err.Error(), "another file is there") {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"127.0.0.1:1", "http://x:1", "tcp://nowhere", "unix://"} {
		if err := consensus.CheckSigner(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
