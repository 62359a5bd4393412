package devnet

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tally-network/tally/chain/wire"
	"github.com/tally-network/tally/chain/x/auction"
	"github.com/tally-network/tally/chain/x/policy"
	"github.com/tally-network/tally/chain/x/provider"
	"github.com/tally-network/tally/chain/x/seats"
	"github.com/tally-network/tally/core/dispute"
	"github.com/tally-network/tally/core/job"
	auctionv1 "github.com/tally-network/tally/gen/tally/auction/v1"
	disputev1 "github.com/tally-network/tally/gen/tally/dispute/v1"
	policyv1 "github.com/tally-network/tally/gen/tally/policy/v1"
	providerv1 "github.com/tally-network/tally/gen/tally/provider/v1"
	seatsv1 "github.com/tally-network/tally/gen/tally/seats/v1"
	workv1 "github.com/tally-network/tally/gen/tally/work/v1"
	"github.com/tally-network/tally/internal/bounded"
	"github.com/tally-network/tally/node/events"
	"github.com/tally-network/tally/node/home"
	"github.com/tally-network/tally/node/role"
)

// Config describes a devnet. What is zero is as Dir has it already, and in a new
// Dir as in Default.
type Config struct {
	Dir string `json:"-"` // holds all of the network; is made if absent

	Chain       string            `json:"chain,omitzero"`
	Validators  int               `json:"validators,omitzero"`
	Providers   int               `json:"providers,omitzero"`
	Challengers int               `json:"challengers,omitzero"`
	Spread      int               `json:"spread,omitzero"`      // the providers work under so many of the validators, in turn
	UnitPrices  []uint64          `json:"unit_prices,omitzero"` // utally per GFLOP, of the providers in turn
	BytePrice   uint64            `json:"byte_price,omitzero"`  // utally per GB
	FeeBps      uint32            `json:"fee_bps,omitzero"`     // of the validators
	MaxLeases   uint32            `json:"max_leases,omitzero"`  // of each validator
	Stake       uint64            `json:"stake,omitzero"`       // utally bonded by each validator
	Bond        uint64            `json:"bond,omitzero"`        // utally bonded by each provider and challenger
	Funds       uint64            `json:"funds,omitzero"`       // utally that the consumer has at first
	Reserve     uint64            `json:"reserve,omitzero"`     // utally that rewards are paid out of
	Registry    providerv1.Params `json:"registry,omitzero"`
	Work        workv1.Params     `json:"work,omitzero"`
	Dispute     disputev1.Params  `json:"dispute,omitzero"`
	Policy      policyv1.Params   `json:"policy,omitzero"`
	Auction     auctionv1.Params  `json:"auction,omitzero"`
	Consensus   Consensus         `json:"consensus,omitzero"`

	CommitTimeout time.Duration `json:"commit_timeout,omitzero"`
	EmptyInterval time.Duration `json:"empty_interval,omitzero"`
	Threads       int           `json:"threads,omitzero"` // of each role that computes
	Metrics       bool          `json:"metrics,omitzero"` // each role serves its own on a free port

	// LeaveConsumer leaves the consumer's home to another process: its member has
	// no env.
	LeaveConsumer bool `json:"-"`

	Log *slog.Logger `json:"-"`
	// Observe sees what happens in all roles, many at a time. It may be nil.
	Observe func(events.Event) `json:"-"`
	// Prepare may change a role's env before the role starts. It may be nil.
	Prepare func(*role.Env) `json:"-"`
	// Run is what each role does until ctx is done; nil stands for runner.Run.
	Run func(ctx context.Context, h *home.Home, env *role.Env) error `json:"-"`
}

// Consensus is how seats follow computing power.
type Consensus struct {
	EpochBlocks int64          `json:"epoch_blocks,omitzero"` // blocks of an epoch, in which there is one draw
	Bond        uint64         `json:"bond,omitzero"`         // utally behind the seats of each validator
	Seats       seatsv1.Params `json:"seats,omitzero"`
}

const (
	tally     = 1_000_000 // utally
	MaxPeers  = 64        // of each role
	base      = 200_000   // µut below which the validators stand in for power: some hundred small orders compute as much
	maxConfig = 64 << 10  // bytes of the file
	link      = 20e6      // bytes a second that each custodian has of a disk that all share
)

// Default is a devnet of four validators, the first of which leads four
// providers, with deadlines that one can wait for.
func Default() Config {
	tenMinutes := (10 * time.Minute).Milliseconds()
	leases, disputes := wire.ParamsToProto(job.DefaultParams.Quick(), wire.Sentences{Carelessness: tenMinutes, Absence: 2 * tenMinutes}), wire.RulesToProto(dispute.DefaultRules)
	leases.LeadTimeoutMs, leases.AnswerMs = 60_000, 40_000
	leases.Link = link
	leases.RetentionMs = (24 * time.Hour).Milliseconds()
	disputes.ClockMs, disputes.AnswerMs = 120_000, 40_000
	votes := policy.DefaultParams()
	votes.Deposit, votes.VotingMs, votes.DelayMs = 100*tally, 30_000, 10_000
	votes.Base, votes.Quorum = base, base*2/5
	places := seats.DefaultParams()
	places.UnbondingMs, places.RedelegateMs = tenMinutes, epoch
	sales := auction.DefaultParams()
	sales.PeriodMs, sales.WindowMs, sales.RevealMs = 6_000, 2_000, 3_000
	return Config{
		Chain: "tally-devnet", Validators: 4, Providers: 4, Challengers: 1, Spread: 1,
		UnitPrices: []uint64{900, 1_000, 1_100, 1_200}, BytePrice: 100, FeeBps: 500, MaxLeases: 4,
		Stake: 100_000 * tally, Bond: 50_000 * tally, Funds: 1_000_000 * tally, Reserve: 10_000_000 * tally,
		Registry: provider.DefaultGenesis().Params, Work: leases, Dispute: disputes, Policy: votes, Auction: sales,
		Consensus:     Consensus{EpochBlocks: 10, Bond: 100_000 * tally, Seats: places},
		CommitTimeout: 200 * time.Millisecond, EmptyInterval: time.Second, Threads: 1,
	}
}

func (c *Config) check() error {
	for _, n := range []struct {
		what string
		n    int
	}{{"validators", c.Validators}, {"providers", c.Providers}, {"challengers", c.Challengers}, {"threads", c.Threads}} {
		if n.n < 1 || n.n > MaxPeers {
			return fmt.Errorf("%d %s: give 1 to %d", n.n, n.what, MaxPeers)
		}
	}
	if c.Spread < 1 || c.Spread > c.Validators {
		return fmt.Errorf("providers under %d validators: there are %d", c.Spread, c.Validators)
	}
	if c.Consensus.EpochBlocks < 4 {
		return fmt.Errorf("consensus.epoch_blocks = %d: give at least 4", c.Consensus.EpochBlocks)
	}
	if c.EmptyInterval <= 0 || c.CommitTimeout <= 0 {
		return errors.New("commit_timeout and empty_interval must be positive")
	}
	return nil
}

// settle makes the configuration whole: by what the directory holds, or by the
// defaults, which it then holds.
func (c *Config) settle() error {
	file := filepath.Join(c.Dir, configFile)
	asked, err := c.fields()
	if err != nil {
		return err
	}
	text, err := bounded.ReadFile(file, maxConfig)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		whole := Default()
		if err := overlay(&whole, asked); err != nil {
			return err
		}
		if text, err = json.MarshalIndent(whole, "", "  "); err != nil {
			return err
		}
		if err := whole.check(); err != nil {
			return err
		}
		if err := home.WriteFile(file, append(text, '\n'), 0o600); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	var held map[string]json.RawMessage
	if err := json.Unmarshal(text, &held); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	var differ []string
	for _, key := range slices.Sorted(maps.Keys(asked)) {
		if !bytes.Equal(compact(asked[key]), compact(held[key])) {
			differ = append(differ, fmt.Sprintf("%s is %s, not %s", key, cmp.Or(string(compact(held[key])), "unset"), asked[key]))
		}
	}
	if len(differ) > 0 {
		return fmt.Errorf("%s holds another network: %s; leave that out, or use another directory", c.Dir, strings.Join(differ, "; "))
	}
	if err := overlay(c, held); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	return c.check()
}

// fields returns what is not zero.
func (c *Config) fields() (map[string]json.RawMessage, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	m := map[string]json.RawMessage{}
	return m, json.Unmarshal(text, &m)
}

// overlay puts fields in place of those of c. Rules are replaced whole: what they leave
// out is zero.
func overlay(c *Config, fields map[string]json.RawMessage) error {
	for name, rules := range map[string]interface{ Reset() }{"registry": &c.Registry, "work": &c.Work, "dispute": &c.Dispute, "policy": &c.Policy, "auction": &c.Auction} {
		if fields[name] != nil {
			rules.Reset()
		}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(c)
}

func compact(text json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return text
	}
	return b.Bytes()
}
