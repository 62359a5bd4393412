package p2p

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/tally-network/tally/internal/bounded"
)

const (
	keyType    = "PRIVATE KEY" // PKCS #8, RFC 7468
	maxKeyFile = 4 << 10
)

// CreateKey makes a new peer key and writes it to path, which must not exist,
// as PKCS #8 in PEM, readable by its owner only.
func CreateKey(path string) (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, fmt.Errorf("create peer key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("create peer key: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create peer key: %w", err)
	}
	err = pem.Encode(f, &pem.Block{Type: keyType, Bytes: der})
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("create peer key: %w", err), os.Remove(path))
	}
	return key, nil
}

// LoadKey reads the peer key that CreateKey wrote. A file that others may read
// is refused.
func LoadKey(path string) (ed25519.PrivateKey, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("load peer key: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("load peer key: others can read %s (mode %o); run chmod 600 on it", path, mode)
	}
	text, err := bounded.ReadFile(path, maxKeyFile)
	if err != nil {
		return nil, fmt.Errorf("load peer key: %w", err)
	}
	block, rest := pem.Decode(text)
	if block == nil || block.Type != keyType || len(rest) != 0 {
		return nil, fmt.Errorf("load peer key: %s is not one PEM block of type %q", path, keyType)
	}
	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("load peer key %s: %w", path, err)
	}
	key, ok := any.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("load peer key: %s holds a %T, it must be ed25519", path, any)
	}
	return key, nil
}

// PeerID returns the libp2p name of a peer key of 32 bytes.
func PeerID(key ed25519.PublicKey) (peer.ID, error) {
	k, err := crypto.UnmarshalEd25519PublicKey(key)
	if err != nil {
		return "", fmt.Errorf("peer key: %w", err)
	}
	return peer.IDFromPublicKey(k)
}

// PublicKey returns the peer key of 32 bytes that id names.
func PublicKey(id peer.ID) (ed25519.PublicKey, error) {
	k, err := id.ExtractPublicKey()
	if err != nil {
		return nil, fmt.Errorf("peer %s: %w", id, err)
	}
	if k.Type() != crypto.Ed25519 {
		return nil, fmt.Errorf("peer %s: its key is of type %s, it must be ed25519", id, k.Type())
	}
	return k.Raw()
}
