package p2p

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"pgregory.net/rapid"
)

func TestKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "peer.key")
	if _, err := LoadKey(path); err == nil {
		t.Fatal("a key came from no file")
	}
	key, err := CreateKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := CreateKey(path); err == nil {
		t.Fatal("a key was overwritten")
	}
	got, err := LoadKey(path)
	if err != nil || !key.Equal(got) {
		t.Fatalf("another key came back: %v", err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadKey(path); err == nil {
		t.Fatal("a key that others can read was loaded")
	}
}

func TestBadKeyFiles(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := x509.MarshalPKCS8PrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, b []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b})
	}
	for name, text := range map[string][]byte{
		"empty":        nil,
		"no PEM":       []byte("secret"),
		"other type":   block("CERTIFICATE", other),
		"not PKCS 8":   block(keyType, []byte("x")),
		"not ed25519":  block(keyType, other),
		"more than it": append(block(keyType, other), "more"...),
		"large":        bytes.Repeat([]byte("x"), maxKeyFile+1),
	} {
		path := filepath.Join(t.TempDir(), "peer.key")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadKey(path); err == nil {
			t.Errorf("%s: a key was loaded", name)
		}
	}
}

func TestPeerIDsAndKeys(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.SliceOfN(rapid.Byte(), ed25519.SeedSize, ed25519.SeedSize).Draw(rt, "seed")
		key := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
		id, err := PeerID(key)
		if err != nil {
			rt.Fatal(err)
		}
		back, err := PublicKey(id)
		if err != nil || !key.Equal(back) {
			rt.Fatalf("%x came back as %x: %v", key, back, err)
		}
	})
	if _, err := PeerID(make([]byte, 31)); err == nil {
		t.Error("a key of 31 bytes has a peer ID")
	}
	if _, err := PublicKey("nonsense"); err == nil {
		t.Error("nonsense names a key")
	}
	_, pub, err := crypto.GenerateSecp256k1Key(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.IDFromPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := PublicKey(id); err == nil {
		t.Error("a secp256k1 key passed as ed25519")
	}
}
