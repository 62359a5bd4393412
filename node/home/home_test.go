package home

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/cosmos/cosmos-sdk/crypto/keyring"

	"github.com/tally-network/tally/chain/app"
)

var node = Node{"http://127.0.0.1:26657", "127.0.0.1:9090"}

func settings(r Role) Settings { return Settings{Role: r, Chain: "tally-test", Node: node} }

// create makes a home and returns who it is.
func create(t *testing.T, dir string, r Role) (address, phrase string) {
	t.Helper()
	phrase, err := Create(dir, settings(r))
	if err != nil {
		t.Fatal(err)
	}
	h, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	return h.Address, phrase
}

func TestCreate(t *testing.T) {
	for _, r := range []Role{Consumer, Provider, Validator, Challenger} {
		dir := filepath.Join(t.TempDir(), "a", string(r))
		address, phrase := create(t, dir, r)
		if words := strings.Fields(phrase); len(words) != 24 {
			t.Fatalf("%s: recovery phrase of %d words", r, len(words))
		}
		if !strings.HasPrefix(address, "tally1") {
			t.Fatalf("%s: address %s", r, address)
		}
		again, phrase := create(t, dir, r)
		if again != address || phrase != "" {
			t.Fatalf("%s: a second call made another home", r)
		}
		if got := exists(filepath.Join(dir, vrfFile)); got != (r != Consumer) {
			t.Fatalf("%s: VRF key: %v", r, got)
		}
		// What others must not read.
		if runtime.GOOS == "windows" {
			continue
		}
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if info, err := d.Info(); err != nil || info.Mode().Perm()&0o077 != 0 && !d.IsDir() {
				t.Errorf("%s: mode of %s is %v, %v", r, path, info.Mode(), err)
			}
			return nil
		})
	}
}

// A home that was left at any point of its making is finished by the next call,
// and keeps the keys it had.
func TestCreateGoesOn(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole")
	create(t, whole, Validator)
	order := []string{passphraseFile, keyringDir, peerFile, vrfFile, settingsFile}
	for made := range len(order) {
		dir := filepath.Join(t.TempDir(), "v")
		kept := contents(t, whole)
		for _, name := range order[made:] {
			maps.DeleteFunc(kept, func(path, _ string) bool { return strings.HasPrefix(path, name) })
		}
		for path, text := range kept {
			path = filepath.Join(dir, path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		// What a killed process leaves aside.
		for _, name := range []string{peerFile, vrfFile, settingsFile, passphraseFile} {
			if err := os.WriteFile(filepath.Join(dir, name+".tmp"), []byte("half"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(filepath.Join(dir, "tmp", keyringDir, "account.info"), 0o700); err != nil {
			t.Fatal(err)
		}

		create(t, dir, Validator)
		now := contents(t, dir)
		for name, text := range kept {
			if name != lockFile && now[name] != text {
				t.Errorf("made %d: %s was replaced", made, name)
			}
		}
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A home whose key a signer has makes no other, which nobody would know.
func TestIdentityWithASigner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "v")
	create(t, dir, Validator)
	h, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	h.Settings.Validator.Signer = "tcp://127.0.0.1:1"
	id, err := h.Identity()
	if err != nil || id.NodeID == "" || id.ConsensusKey != nil || exists(filepath.Join(dir, chainDir, "config", "priv_validator_key.json")) {
		t.Errorf("%+v, %v", id, err)
	}
	h.Settings.Validator.Signer = ""
	if own, err := h.Identity(); err != nil || own.NodeID != id.NodeID || own.ConsensusKey == nil {
		t.Errorf("%+v, %v", own, err)
	}
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	create(t, dir, Challenger)
	h, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, enter := range map[string]func() error{
		"open":    func() error { _, err := Open(dir); return err },
		"acquire": func() error { _, err := Acquire(dir); return err },
	} {
		var busy *BusyError
		if err := enter(); !errors.As(err, &busy) || busy.PID != os.Getpid() {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	create(t, dir, Challenger)
}

func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(dir string) error
		words  string
	}{
		"no home": {func(dir string) error { return os.Remove(filepath.Join(dir, settingsFile)) }, "no home"},
		"bad settings": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, settingsFile), []byte("role: x"), 0o600)
		}, `"x"`},
		"no passphrase":     {func(dir string) error { return os.Remove(filepath.Join(dir, passphraseFile)) }, "passphrase"},
		"wrong passphrase":  {func(dir string) error { return os.WriteFile(filepath.Join(dir, passphraseFile), []byte("x"), 0o600) }, "account"},
		"public passphrase": {func(dir string) error { return os.Chmod(filepath.Join(dir, passphraseFile), 0o644) }, "chmod 600"},
		"no account":        {func(dir string) error { return os.RemoveAll(filepath.Join(dir, keyringDir)) }, "account"},
		"no peer key":       {func(dir string) error { return os.Remove(filepath.Join(dir, peerFile)) }, "peer"},
		"no VRF key":        {func(dir string) error { return os.Remove(filepath.Join(dir, vrfFile)) }, "VRF"},
	} {
		dir := t.TempDir()
		create(t, dir, Validator)
		if err := c.damage(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
		// The lock is not kept.
		if lock, err := Acquire(dir); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if err := lock.Release(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The SDK's own keyring reads a home's keys when a person types the passphrase.
func TestKeyringIsTheSDKs(t *testing.T) {
	dir := t.TempDir()
	address, _ := create(t, dir, Consumer)
	passphrase, err := os.ReadFile(filepath.Join(dir, passphraseFile))
	if err != nil {
		t.Fatal(err)
	}
	kr, err := keyring.New(app.Name, keyring.BackendFile, dir, strings.NewReader(string(passphrase)), keyCodec())
	if err != nil {
		t.Fatal(err)
	}
	record, err := kr.Key(AccountName)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := record.GetAddress(); err != nil || got.String() != address {
		t.Fatalf("%s, %v; want %s", got, err, address)
	}
}
