package vrf

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The examples 19 to 21 of RFC 9381, appendix B.4.
var examples = []struct{ seed, public, input, proof, output string }{
	{
		"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
		"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
		"",
		"7d9c633ffeee27349264cf5c667579fc583b4bda63ab71d001f89c10003ab46f14adf9a3cd8b8412d9038531e865c341cafa73589b023d14311c331a9ad15ff2fb37831e00f0acaa6d73bc9997b06501",
		"9d574bf9b8302ec0fc1e21c3ec5368269527b87b462ce36dab2d14ccf80c53cccf6758f058c5b1c856b116388152bbe509ee3b9ecfe63d93c3b4346c1fbc6c54",
	},
	{
		"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
		"3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
		"72",
		"47b327393ff2dd81336f8a2ef10339112401253b3c714eeda879f12c509072ef055b48372bb82efbdce8e10c8cb9a2f9d60e93908f93df1623ad78a86a028d6bc064dbfc75a6a57379ef855dc6733801",
		"38561d6b77b71d30eb97a062168ae12b667ce5c28caccdf76bc88e093e4635987cd96814ce55b4689b3dd2947f80e59aac7b7675f8083865b46c89b2ce9cc735",
	},
	{
		"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
		"fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
		"af82",
		"926e895d308f5e328e7aa159c06eddbe56d06846abf5d98c2512235eaa57fdce35b46edfc655bc828d44ad09d1150f31374e7ef73027e14760d42e77341fe05467bb286cc2c9d7fde29120a0b2320d04",
		"121b7f9b9aaaa29099fc04a94ba52784d44eac976dd1a3cca458733be5cd090a7b5fbd148444f17f8daf1fb55cb04b1ae85a626e30a54b4b0f8abf4a43314a58",
	},
}

func TestExamplesOfTheRFC(t *testing.T) {
	for _, e := range examples {
		key := ed25519.NewKeyFromSeed(unhex(t, e.seed))
		public, input := unhex(t, e.public), unhex(t, e.input)
		if !bytes.Equal(key.Public().(ed25519.PublicKey), public) {
			t.Fatal("another public key")
		}
		out, proof, err := Prove(key, input)
		if err != nil || !bytes.Equal(proof, unhex(t, e.proof)) || !bytes.Equal(out[:], unhex(t, e.output)) {
			t.Fatalf("prove: %x, %x, %v", proof, out, err)
		}
		if seen, err := Verify(public, input, proof); err != nil || seen != out {
			t.Fatalf("verify: %x, %v", seen, err)
		}
	}
}

func TestBentProofsFail(t *testing.T) {
	e := examples[2]
	public, input, proof := unhex(t, e.public), unhex(t, e.input), unhex(t, e.proof)
	for bit := range 8 * len(proof) {
		bent := bytes.Clone(proof)
		bent[bit/8] ^= 1 << (bit % 8)
		if _, err := Verify(public, input, bent); !errors.Is(err, ErrProof) {
			t.Fatalf("bit %d: %v", bit, err)
		}
	}
	for name, fails := range map[string]func() error{
		"short proof": func() error { _, err := Verify(public, input, proof[:79]); return err },
		"long proof":  func() error { _, err := Verify(public, input, append(bytes.Clone(proof), 0)); return err },
		"other input": func() error { _, err := Verify(public, []byte("x"), proof); return err },
		"other key":   func() error { _, err := Verify(unhex(t, examples[0].public), input, proof); return err },
	} {
		if err := fails(); !errors.Is(err, ErrProof) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBadKeys(t *testing.T) {
	for name, key := range map[string][]byte{
		"empty":         nil,
		"short":         make([]byte, 31),
		"order 4":       make([]byte, 32),
		"identity":      append([]byte{1}, make([]byte, 31)...),
		"not canonical": unhex(t, "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
		"not a point":   append([]byte{2}, make([]byte, 31)...),
	} {
		if err := CheckKey(key); err == nil {
			t.Errorf("%s: %x was taken", name, key)
		}
		if _, err := Verify(key, nil, unhex(t, examples[0].proof)); err == nil || errors.Is(err, ErrProof) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := Prove(make([]byte, 32), nil); err == nil {
		t.Error("a short private key was used")
	}
}

// A foreign public half must not reach the prover: two proofs of one secret
// under two public keys reveal it.
func TestForeignPublicHalf(t *testing.T) {
	key := ed25519.NewKeyFromSeed(unhex(t, examples[0].seed))
	mixed := append(bytes.Clone(key[:32]), unhex(t, examples[1].public)...)
	_, want, _ := Prove(key, []byte("in"))
	if _, got, err := Prove(mixed, []byte("in")); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("proved under a foreign key: %v", err)
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "seed")
		input := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "input")
		key := ed25519.NewKeyFromSeed(seed)
		public := key.Public().(ed25519.PublicKey)
		out, proof, err := Prove(key, input)
		if err != nil {
			t.Fatal(err)
		}
		if seen, err := Verify(public, input, proof); err != nil || seen != out {
			t.Fatal(err)
		}
		if _, err := Verify(public, append(input, 1), proof); !errors.Is(err, ErrProof) {
			t.Fatal("the proof held for another input")
		}
	})
}

func FuzzVerify(f *testing.F) {
	e := examples[1]
	f.Add(unhex(f, e.public), unhex(f, e.input), unhex(f, e.proof))
	f.Fuzz(func(t *testing.T, key, input, proof []byte) {
		out, err := Verify(key, input, proof)
		if (err == nil) == (out == Output{}) {
			t.Fatalf("%x, %v", out, err)
		}
	})
}

func BenchmarkProve(b *testing.B) {
	key := ed25519.NewKeyFromSeed(make([]byte, 32))
	for b.Loop() {
		_, _, _ = Prove(key, []byte("input"))
	}
}

func BenchmarkVerify(b *testing.B) {
	key := ed25519.NewKeyFromSeed(make([]byte, 32))
	_, proof, _ := Prove(key, []byte("input"))
	for b.Loop() {
		_, _ = Verify(key[32:], []byte("input"), proof)
	}
}
