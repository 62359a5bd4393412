package light_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cometbft/cometbft/crypto/ed25519"
	"github.com/cometbft/cometbft/crypto/secp256k1"
	cmtjson "github.com/cometbft/cometbft/libs/json"
	coretypes "github.com/cometbft/cometbft/rpc/core/types"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/tally-network/tally/internal/testkit/headers"
	"github.com/tally-network/tally/node/client"
	"github.com/tally-network/tally/node/light"
)

// Sets at which CometBFT would panic are a node's lies.
func TestSetsOfNodesThatLie(t *testing.T) {
	b := headers.New("tally-1", 4, 1, begin).Block(7)
	for name, change := range map[string]func(all []*cmttypes.Validator){
		"the truth":      func([]*cmttypes.Validator) {},
		"one is empty":   func(all []*cmttypes.Validator) { all[1] = nil },
		"one is twice":   func(all []*cmttypes.Validator) { all[1] = all[0] },
		"a key is short": func(all []*cmttypes.Validator) { all[1].PubKey = ed25519.PubKey{1, 2, 3} },
		"no key":         func(all []*cmttypes.Validator) { all[1].PubKey = nil },
		"another key":    func(all []*cmttypes.Validator) { all[1].PubKey = secp256k1.GenPrivKey().PubKey() },
	} {
		all := b.ValidatorSet.Copy().Validators
		change(all)
		node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var ask struct {
				ID     json.RawMessage `json:"id"`
				Method string          `json:"method"`
			}
			_ = json.NewDecoder(r.Body).Decode(&ask)
			answer, err := cmtjson.Marshal(&coretypes.ResultValidators{BlockHeight: 7, Validators: all, Count: len(all), Total: len(all)})
			if ask.Method == "commit" {
				answer, err = cmtjson.Marshal(&coretypes.ResultCommit{SignedHeader: *b.SignedHeader})
			}
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, ask.ID, answer)
		}))
		rpc, err := client.NewHeaders(node.URL)
		if err != nil {
			t.Fatal(err)
		}
		_, err = light.Block(t.Context(), &client.Client{Headers: rpc}, 7)
		node.Close()
		if name == "the truth" && err != nil || name != "the truth" && (err == nil || !strings.Contains(err.Error(), "ask another")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
