package founding

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/tally-network/tally/chain/address"
	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/chain/coin"
	"github.com/tally-network/tally/node/consensus"
)

// PublicChain is a chain as registries, wallets and explorers name it, and where they reach it.
type PublicChain struct {
	Name           string // in small letters and digits
	Network        string // mainnet, testnet or devnet
	RPC, REST      []string
	GRPC, Peers    []string
	Genesis        string // URL
	Site, Explorer string // URLs
}

// slip44 is the type of coin in the derivation of keys: that of Cosmos, as in homes.
const slip44 = 118

var chainName = regexp.MustCompile(`^[a-z0-9]{1,40}$`)

// Check refuses what the readers of these files would.
func (p *PublicChain) Check() error {
	if !chainName.MatchString(p.Name) {
		return fmt.Errorf("--name %q: a registry wants small letters and digits alone", p.Name)
	}
	if p.Network != "mainnet" && p.Network != "testnet" && p.Network != "devnet" {
		return fmt.Errorf("--network %q: want mainnet, testnet or devnet", p.Network)
	}
	if len(p.RPC) == 0 || len(p.REST) == 0 {
		return errors.New("--rpc and --rest are missing: wallets need one of each, which browsers may call (validator.origins)")
	}
	for _, text := range append(append([]string{p.Genesis, p.Site, p.Explorer}, p.RPC...), p.REST...) {
		if u, err := url.Parse(text); err != nil || text != "" && (u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
			return fmt.Errorf("%q is no address as https://host", text)
		}
	}
	for _, at := range p.GRPC {
		if _, _, err := net.SplitHostPort(at); err != nil {
			return fmt.Errorf("--grpc %q: write host:port", at)
		}
	}
	for _, peer := range p.Peers {
		if !strings.Contains(peer, "@") {
			return fmt.Errorf("--peers %q: write ID@HOST:PORT", peer)
		}
	}
	return consensus.CheckPeers(p.Peers)
}

// object is JSON whose fields readers take in any order.
type object = map[string]any

// RegistryFiles returns the files that make a chain known, by name: chain.json and assetlist.json for the Cosmos chain registry,
// keplr.json for wallets (Keplr's and Leap's suggestChain), explorer.json for ping.pub's explorer.
//
// Source: the schemas of cosmos/chain-registry; Keplr's ChainInfo; ping-pub/explorer's chains.
func RegistryFiles(b *app.Summary, p PublicChain) (map[string][]byte, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	gas := func(parts uint64) json.Number { // utally for one gas
		return json.Number(strconv.FormatFloat(float64(b.GasPrice*parts)/1e7, 'f', -1, 64)) // float: as wallets write it
	}
	low, average, high := gas(10), gas(15), gas(30)
	price := object{"low": low, "average": average, "high": high}
	up := strings.ToUpper(coin.Display)
	currency := object{"coinDenom": up, "coinMinimalDenom": coin.Denom, "coinDecimals": coin.Exponent}
	fee := object{"coinDenom": up, "coinMinimalDenom": coin.Denom, "coinDecimals": coin.Exponent, "gasPriceStep": price}
	prefixes := object{}
	for name, suffix := range map[string]string{
		"AccAddr": "", "AccPub": "pub", "ValAddr": "valoper", "ValPub": "valoperpub", "ConsAddr": "valcons", "ConsPub": "valconspub",
	} {
		prefixes["bech32Prefix"+name] = address.Prefix + suffix
	}
	schemas := "../" // from the folder of a chain in the registry
	if p.Network != "mainnet" {
		schemas = "../../"
	}
	chain := object{
		"$schema": schemas + "chain.schema.json", "chain_name": p.Name, "chain_type": "cosmos", "chain_id": b.ChainID, "status": "upcoming",
		"network_type": p.Network, "pretty_name": "Tally", "bech32_prefix": address.Prefix, "daemon_name": app.Name, "node_home": "$HOME/.tally",
		"key_algos": []string{"secp256k1"}, "slip44": slip44,
		"description": "Pays for computation that anybody can check, down to one block of 32 multiplications.",
		"fees": object{"fee_tokens": []object{{
			"denom": coin.Denom, "fixed_min_gas_price": low, "low_gas_price": low, "average_gas_price": average, "high_gas_price": high,
		}}},
		"codebase": codebase(p.Genesis),
		"peers":    object{"persistent_peers": peers(p.Peers)},
		"apis":     object{"rpc": endpoints(p.RPC), "rest": endpoints(p.REST), "grpc": endpoints(p.GRPC)},
	}
	if p.Site != "" {
		chain["website"] = p.Site
	}
	if p.Explorer != "" {
		chain["explorers"] = []object{{"kind": "ping.pub", "url": p.Explorer, "tx_page": strings.TrimSuffix(p.Explorer, "/") + "/tx/${txHash}"}}
	}
	version := versionOf("github.com/cosmos/cosmos-sdk")
	files := map[string]any{
		"chain.json": chain,
		"assetlist.json": object{"$schema": schemas + "assetlist.schema.json", "chain_name": p.Name, "assets": []object{{
			"description": "Pays for checked computation.", "type_asset": "sdk.coin", "base": coin.Denom, "display": coin.Display, "name": "Tally", "symbol": up,
			"denom_units": []object{{"denom": coin.Denom, "exponent": 0}, {"denom": coin.Display, "exponent": coin.Exponent}},
		}}},
		"keplr.json": object{
			"chainId": b.ChainID, "chainName": "Tally", "rpc": p.RPC[0], "rest": p.REST[0], "bip44": object{"coinType": slip44}, "bech32Config": prefixes,
			"currencies": []object{currency}, "feeCurrencies": []object{fee}, "features": []string{},
		},
		"explorer.json": object{
			"chain_name": p.Name, "registry_name": p.Name, "api": endpoints(p.REST), "rpc": endpoints(p.RPC), "sdk_version": version,
			"coin_type": strconv.Itoa(slip44), "min_tx_fee": strconv.FormatUint(b.GasPrice/5+1, 10), "addr_prefix": address.Prefix, "theme_color": "#1f6feb", "logo": "",
			"assets": []object{{"base": coin.Denom, "symbol": up, "exponent": strconv.Itoa(coin.Exponent), "coingecko_id": "", "logo": ""}},
		},
	}
	out := map[string][]byte{}
	for name, file := range files {
		text, err := json.MarshalIndent(file, "", "  ")
		if err != nil {
			return nil, err
		}
		out[name] = append(text, '\n')
	}
	return out, nil
}

func codebase(genesis string) object {
	out := object{
		"git_repo":  "https://github.com/tally-network/tally",
		"sdk":       object{"type": "cosmos", "version": versionOf("github.com/cosmos/cosmos-sdk")},
		"consensus": object{"type": "cometbft", "version": versionOf("github.com/cometbft/cometbft")},
	}
	if genesis != "" {
		out["genesis"] = object{"genesis_url": genesis}
	}
	return out
}

// versionOf returns the version of a library that this program has.
func versionOf(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == module {
				return d.Version
			}
		}
	}
	return "v0"
}

func endpoints(all []string) []object {
	out := []object{}
	for _, at := range all {
		out = append(out, object{"address": at})
	}
	return out
}

func peers(all []string) []object {
	out := []object{}
	for _, peer := range all {
		id, at, _ := strings.Cut(peer, "@")
		out = append(out, object{"id": id, "address": at})
	}
	return out
}
