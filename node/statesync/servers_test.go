package statesync

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	cmtdb "github.com/cometbft/cometbft-db"
	cmtlog "github.com/cometbft/cometbft/libs/log"
	cmtlight "github.com/cometbft/cometbft/light"
	"github.com/cometbft/cometbft/light/provider"
	lightdb "github.com/cometbft/cometbft/light/store/db"
	coretypes "github.com/cometbft/cometbft/rpc/core/types"
	cmttypes "github.com/cometbft/cometbft/types"

	chainheaders "github.com/tally-network/tally/internal/testkit/headers"
	"github.com/tally-network/tally/node/light"
)

// silent is a server that accepts each question and answers none.
type silent struct {
	provider.Provider
	asked int
}

// LightBlock implements provider.Provider.
func (s *silent) LightBlock(ctx context.Context, _ int64) (*cmttypes.LightBlock, error) {
	s.asked++
	<-ctx.Done()
	return nil, ctx.Err()
}

// Commit implements commits.
func (s *silent) Commit(ctx context.Context, _ *int64) (*coretypes.ResultCommit, error) {
	_, err := s.LightBlock(ctx, 0)
	return nil, err
}

// broken is a server at whose answers CometBFT's provider panics.
type broken struct{ provider.Provider }

// LightBlock implements provider.Provider.
func (broken) LightBlock(context.Context, int64) (*cmttypes.LightBlock, error) {
	var none *cmttypes.SignedHeader
	return &cmttypes.LightBlock{SignedHeader: none}, errors.New(none.ChainID)
}

// An answer at which CometBFT's provider panics is a bad one.
func TestAnswersAtWhichTheProviderPanics(t *testing.T) {
	s := &server{Provider: broken{}, patience: time.Second}
	bad := provider.ErrBadLightBlock{}
	if _, err := s.LightBlock(t.Context(), 1); !errors.As(err, &bad) {
		t.Error(err)
	}
}

// A server that accepts and says nothing costs its patience once, and others are asked.
func TestSilentServers(t *testing.T) {
	none := &silent{}
	s := &server{Provider: none, commits: none, patience: time.Millisecond}
	for range 3 {
		if _, err := s.LightBlock(t.Context(), 1); err != provider.ErrNoResponse { //nolint:errorlint // as the light client compares it
			t.Fatal(err)
		}
	}
	if none.asked != 1 {
		t.Errorf("a silent server was asked %d times", none.asked)
	}

	c := chainheaders.New("c", 4, 1, time.Now())
	honest := &teller{first: 1, blocks: c.History(1, 11)}
	b, told := restored(c, 1, 10, honest)
	b.headers.servers = append([]*server{{Provider: none, commits: none, patience: time.Millisecond}}, b.headers.servers...)
	b.above = honest.blocks[10].Header
	if err := b.run(t.Context()); err != nil || len(*told) > 0 {
		t.Fatal(err, *told)
	}
	b.holds(t, honest, 1)

	over := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer hangs.Close()
	defer close(over)
	from := &Source{Servers: []string{hangs.URL, hangs.URL}, patience: time.Millisecond, Trusted: func() (int64, []byte, error) { return 1, make([]byte, 32), nil }}
	if _, err := newStateProvider(t.Context(), &cmttypes.GenesisDoc{ChainID: "c"}, from, cmtlog.NewNopLogger()); err == nil || !strings.Contains(err.Error(), "see that they answer") {
		t.Fatal(err)
	}
}

// away is a server that cannot be reached.
type away struct{ provider.Provider }

// LightBlock implements provider.Provider.
func (away) LightBlock(context.Context, int64) (*cmttypes.LightBlock, error) {
	return nil, errors.New("connection refused")
}

// provide returns the state provider of a chain whose headers some nodes tell, and block 1 of which is trusted.
func provide(t *testing.T, c *chainheaders.Chain, from ...provider.Provider) (*stateProvider, error) {
	t.Helper()
	h := &stateProvider{initial: 1}
	h.ctx, h.end = context.WithCancel(t.Context())
	var all []provider.Provider
	for _, p := range from {
		told, _ := p.(commits)
		s := &server{Provider: p, commits: told, patience: patience}
		h.servers, all = append(h.servers, s), append(all, s)
	}
	var err error
	h.client, err = cmtlight.NewClient(t.Context(), c.ID, cmtlight.TrustOptions{Period: light.TrustingPeriod, Height: 1, Hash: from[0].(*teller).blocks[0].Hash()},
		all[0], append(all[1:], all[0]), lightdb.New(cmtdb.NewMemDB(), ""))
	return h, err
}

// A commit that would make CometBFT panic at each start is taken from another server, or ends the restoring.
func TestCommitsAreWhole(t *testing.T) {
	c := chainheaders.New("c", 4, 1, time.Now().Add(-time.Hour))
	blocks := c.History(1, 20)
	honest := &teller{first: 1, blocks: blocks}
	for name, lie := range map[string]func(*cmttypes.CommitSig){
		"a wrong signature past two thirds": func(s *cmttypes.CommitSig) { s.Signature = make([]byte, 64) },
		"a wrong vote for nil":              func(s *cmttypes.CommitSig) { s.BlockIDFlag = cmttypes.BlockIDFlagNil },
		"a vote of somebody else":           func(s *cmttypes.CommitSig) { s.ValidatorAddress = make([]byte, 20) },
	} {
		t.Run(name, func(t *testing.T) {
			liar := &teller{first: 1, blocks: blocks, lie: func(x *cmttypes.LightBlock) {
				if x.Height == 10 {
					lie(&x.Commit.Signatures[3])
				}
			}}
			h, err := provide(t, c, liar, honest)
			if err != nil {
				t.Fatal(err)
			}
			commit, err := h.Commit(t.Context(), 10)
			if err != nil {
				t.Fatal(err)
			}
			commit.ToVoteSet(c.ID, blocks[9].ValidatorSet) // would panic
			if h, err = provide(t, c, liar); err != nil {
				t.Fatal(err)
			}
			if _, err = h.Commit(t.Context(), 10); !errors.Is(err, cmtlight.ErrNoWitnesses) || !strings.Contains(err.Error(), "name another") {
				t.Fatalf("a commit with %s: %v", name, err)
			}
		})
	}
}

// Proposers' priorities are believed from no server, so a wrong one keeps nobody from restoring either.
func TestPrioritiesOfServersDoNotCount(t *testing.T) {
	c := chainheaders.New("c", 4, 1, time.Now().Add(-time.Hour))
	honest := &teller{first: 1, blocks: c.History(1, 20)}
	liar := &teller{first: 1, blocks: honest.blocks, lie: func(x *cmttypes.LightBlock) {
		x.ValidatorSet.Validators[2].ProposerPriority = 1 << 40
		x.ValidatorSet.Proposer = x.ValidatorSet.Validators[2]
	}}
	h, err := provide(t, c, liar, honest)
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.State(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []*cmttypes.ValidatorSet{s.LastValidators, s.Validators, s.NextValidators} {
		for _, v := range set.Validators {
			if v.ProposerPriority != 0 {
				t.Fatalf("%v is believed", v)
			}
		}
	}
}

// A block that no server has costs no search for its header.
func TestOffersOfNoBlockAreRefusedAtOnce(t *testing.T) {
	c := chainheaders.New("c", 4, 1, time.Now().Add(-time.Hour))
	asked := 0
	honest := &teller{first: 1, blocks: c.History(1, 20), lie: func(*cmttypes.LightBlock) { asked++ }}
	h, err := provide(t, c, honest)
	if err != nil {
		t.Fatal(err)
	}
	asked = 0
	if _, err := h.AppHash(t.Context(), 21); err == nil || errors.Is(err, cmtlight.ErrNoWitnesses) || asked != 1 {
		t.Fatalf("after %d questions: %v", asked, err)
	}
	if got, err := h.AppHash(t.Context(), 18); err != nil || string(got) != string(honest.blocks[18].AppHash) {
		t.Fatal(got, err)
	}
	h.end()
	if _, err := h.AppHash(t.Context(), 1<<40); !errors.Is(err, cmtlight.ErrNoWitnesses) {
		t.Fatal(err)
	}
}

// Where one of two servers is away nobody confirms what the other tells. That is said, in place of a wait.
func TestOneOfTwoServersIsAway(t *testing.T) {
	c := chainheaders.New("c", 4, 1, time.Now().Add(-time.Hour))
	honest := &teller{first: 1, blocks: c.History(1, 20)}
	s := &server{Provider: away{}, patience: patience}
	if _, err := s.LightBlock(t.Context(), 1); err != provider.ErrNoResponse { //nolint:errorlint // as the light client compares it
		t.Fatal(err)
	}
	h := &stateProvider{ctx: t.Context(), initial: 1, servers: []*server{s, {Provider: honest, commits: honest, patience: patience}}}
	var err error
	h.client, err = cmtlight.NewClient(t.Context(), c.ID, cmtlight.TrustOptions{Period: light.TrustingPeriod, Height: 1, Hash: honest.blocks[0].Hash()},
		h.servers[0], []provider.Provider{h.servers[1]}, lightdb.New(cmtdb.NewMemDB(), ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = h.Commit(t.Context(), 10); !errors.Is(err, cmtlight.ErrNoWitnesses) || !strings.Contains(err.Error(), "no other confirms it") {
		t.Fatal(err)
	}
}
