package home

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	dkeyring "github.com/99designs/keyring"
	"golang.org/x/crypto/bcrypt"

	"github.com/cosmos/cosmos-sdk/codec"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	cryptocodec "github.com/cosmos/cosmos-sdk/crypto/codec"
	"github.com/cosmos/cosmos-sdk/crypto/hd"
	"github.com/cosmos/cosmos-sdk/crypto/keyring"
	cryptotypes "github.com/cosmos/cosmos-sdk/crypto/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/tally-network/tally/chain/app"
	"github.com/tally-network/tally/internal/bounded"
)

// AccountName is the name of a home's account in its keyring.
const AccountName = "account"

const (
	keyringDir    = "keyring-file" // where the SDK's keyring looks
	keyhashFile   = "keyhash"      // by which it knows the passphrase
	maxPassphrase = 1 << 10
)

// Keyring opens the keyring of a home with the passphrase that lies beside it,
// so that nobody need type it. Without that file the error is fs.ErrNotExist,
// and the SDK's own keyring asks.
func Keyring(dir string, cdc codec.Codec) (keyring.Keyring, error) {
	path := filepath.Join(dir, passphraseFile)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("others can read %s (mode %o); run chmod 600 on it", path, mode)
	}
	text, err := bounded.ReadFile(path, maxPassphrase)
	if err != nil {
		return nil, err
	}
	return openKeyring(dir, strings.TrimSpace(string(text)), cdc)
}

// Address returns the address of a home's account. The home may be in use.
func Address(dir string) (string, error) {
	key, err := loadAccount(dir)
	if err != nil {
		return "", err
	}
	return sdk.AccAddress(key.PubKey().Address()).String(), nil
}

func openKeyring(dir, passphrase string, cdc codec.Codec) (keyring.Keyring, error) {
	db, err := dkeyring.Open(dkeyring.Config{
		AllowedBackends:  []dkeyring.BackendType{dkeyring.FileBackend},
		ServiceName:      app.Name,
		FileDir:          filepath.Join(dir, keyringDir),
		FilePasswordFunc: dkeyring.FixedStringPrompt(passphrase),
	})
	if err != nil {
		return nil, fmt.Errorf("open keyring: %w", err)
	}
	return keyring.NewInMemoryWithKeyring(db, cdc), nil
}

// createAccount makes passphrase and keyring, if they are missing, and returns
// the recovery phrase of a new key.
func createAccount(dir string) (phrase string, err error) {
	file := filepath.Join(dir, passphraseFile)
	ring := filepath.Join(dir, keyringDir)
	if exists(ring) {
		// A finished one of ours, or one that the owner made by hand.
		_, err := loadAccount(dir)
		return "", err
	}
	if !exists(file) {
		if err := WriteFile(file, []byte(rand.Text()+"\n"), 0o600); err != nil {
			return "", err
		}
	}
	passphrase, err := bounded.ReadFile(file, maxPassphrase)
	if err != nil {
		return "", err
	}
	// Built aside: the keyring writes several files.
	tmp := filepath.Join(dir, "tmp")
	if err := os.RemoveAll(tmp); err != nil {
		return "", err
	}
	kr, err := openKeyring(tmp, strings.TrimSpace(string(passphrase)), keyCodec())
	if err != nil {
		return "", err
	}
	_, phrase, err = kr.NewMnemonic(AccountName, keyring.English, sdk.FullFundraiserPath, "", hd.Secp256k1)
	if err != nil {
		return "", fmt.Errorf("make account key: %w", err)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(strings.TrimSpace(string(passphrase))), bcrypt.MinCost)
	if err != nil {
		return "", err
	}
	if err := WriteFile(filepath.Join(tmp, keyringDir, keyhashFile), hash, 0o600); err != nil {
		return "", err
	}
	return phrase, errors.Join(rename(filepath.Join(tmp, keyringDir), ring), os.Remove(tmp))
}

// loadAccount reads the key of the account.
func loadAccount(dir string) (cryptotypes.PrivKey, error) {
	kr, err := Keyring(dir, keyCodec())
	if err != nil {
		return nil, fmt.Errorf("open keyring (a role needs its passphrase in a file %s of mode 600): %w", passphraseFile, err)
	}
	record, err := kr.Key(AccountName)
	if err != nil {
		return nil, fmt.Errorf("read key %q of the keyring: %w", AccountName, err)
	}
	local := record.GetLocal()
	if local == nil {
		return nil, fmt.Errorf("key %q of the keyring is not stored there; a role must sign by itself", AccountName)
	}
	key, ok := local.PrivKey.GetCachedValue().(cryptotypes.PrivKey)
	if !ok {
		return nil, fmt.Errorf("key %q of the keyring is no private key", AccountName)
	}
	return key, nil
}

// keyCodec reads and writes keys, and nothing else.
func keyCodec() codec.Codec {
	registry := codectypes.NewInterfaceRegistry()
	cryptocodec.RegisterInterfaces(registry)
	return codec.NewProtoCodec(registry)
}
