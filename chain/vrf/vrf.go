// Package vrf is the verifiable random function of the chain: RFC 9381 with the
// suite ECVRF-EDWARDS25519-SHA512-ELL2.
//
// Call [Prove] for an output and its proof, and [Verify] for the output that a proof shows.
//
// Invariants: a key and an input have exactly one output, which only the key's holder can
// compute and anyone can check. Keys are ed25519 keys. [Verify] refuses those of small
// order, so the output is unique for adversarial keys too.
//
// Source: RFC 9381.
package vrf

import (
	"crypto/ed25519"
	"errors"
	"fmt"

	"github.com/oasisprotocol/curve25519-voi/curve"
	voi "github.com/oasisprotocol/curve25519-voi/primitives/ed25519"
	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519/extra/ecvrf"
)

const (
	KeySize   = ed25519.PublicKeySize // bytes of a public key
	ProofSize = ecvrf.ProofSize       // bytes of a proof
)

// Output is the pseudo-random value of an input under a key.
type Output [ecvrf.OutputSize]byte

// ErrProof is returned for a proof that does not hold.
var ErrProof = errors.New("vrf proof does not hold for this key and input")

// Prove returns the output for input and the proof of it. The proof is
// deterministic.
func Prove(key ed25519.PrivateKey, input []byte) (Output, []byte, error) {
	if len(key) != ed25519.PrivateKeySize {
		return Output{}, nil, fmt.Errorf("vrf private key has %d bytes, want %d", len(key), ed25519.PrivateKeySize)
	}
	// Proving under a public half that is not the key's own would leak the
	// private half, so it is derived anew.
	own := ed25519.NewKeyFromSeed(key.Seed())
	proof := ecvrf.Prove(voi.PrivateKey(own), input)
	hash, err := ecvrf.ProofToHash(proof)
	if err != nil {
		return Output{}, nil, fmt.Errorf("hash own vrf proof: %w", err)
	}
	return Output(hash), proof, nil
}

// Verify returns the output that proof shows for input under a public key.
func Verify(key, input, proof []byte) (Output, error) {
	if err := CheckKey(key); err != nil {
		return Output{}, err
	}
	if len(proof) != ProofSize {
		return Output{}, fmt.Errorf("vrf proof has %d bytes, want %d: %w", len(proof), ProofSize, ErrProof)
	}
	ok, hash := ecvrf.Verify(voi.PublicKey(key), proof, input)
	if !ok {
		return Output{}, ErrProof
	}
	return Output(hash), nil
}

// CheckKey reports whether key is the one encoding of a curve point of large
// order, as every ed25519 public key made by rule is.
func CheckKey(key []byte) error {
	if len(key) != KeySize {
		return fmt.Errorf("public key has %d bytes, want %d", len(key), KeySize)
	}
	text := curve.CompressedEdwardsY(key)
	var point curve.EdwardsPoint
	if _, err := point.SetCompressedY(&text); err != nil || !text.IsCanonicalVartime() {
		return errors.New("public key is no point of edwards25519 in canonical form")
	}
	if point.IsSmallOrder() {
		return errors.New("public key has small order: anyone could sign for it")
	}
	return nil
}
