package p2p

import (
	"bytes"
	"errors"
	"testing"
)

func FuzzFrame(f *testing.F) {
	f.Add([]byte{0, 0, 0, 3, 'a', 'b', 'c'}, 10)
	f.Add([]byte{255, 255, 255, 255}, 10)
	f.Add([]byte{0, 0, 0, 9, 'a'}, 10)
	f.Fuzz(func(t *testing.T, in []byte, limit int) {
		if limit < 0 || limit > 1<<20 {
			return
		}
		asked := 0
		body, err := readFrame(bytes.NewReader(in), limit, func(n int) error { asked = n; return nil })
		if asked > limit {
			t.Fatalf("asked for %d bytes, the limit is %d", asked, limit)
		}
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := writeRequest(&out, body); err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(in, out.Bytes()) || asked != len(body) {
			t.Fatal("the frame reads back different")
		}
		full := errors.New("no memory")
		if _, err := readFrame(bytes.NewReader(in), limit, func(int) error { return full }); !errors.Is(err, full) {
			t.Fatalf("a frame was read against the resource manager: %v", err)
		}
	})
}

func FuzzResponse(f *testing.F) {
	for s := range statuses {
		f.Add([]byte{byte(s), 0, 0, 0, 1, 'x'})
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 1000
		s, body, err := readResponse(bytes.NewReader(in), limit, func(n int) error {
			if n > limit {
				t.Fatalf("asked for %d bytes", n)
			}
			return nil
		})
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := writeResponse(&out, s, body); err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(in, out.Bytes()) {
			t.Fatal("the response reads back different")
		}
	})
}

func FuzzAddr(f *testing.F) {
	id, err := PeerID(make([]byte, 32))
	if err != nil {
		f.Fatal(err)
	}
	f.Add("/ip4/127.0.0.1/tcp/1/p2p/" + id.String())
	f.Add("/dns4/example.org/udp/1/quic-v1")
	f.Add("/unix/x/p2p/" + id.String() + "/p2p-circuit")
	f.Fuzz(func(t *testing.T, text string) {
		addrs, err := parseAddrs(id, []string{text})
		if err != nil {
			return
		}
		if len(addrs) != 1 || len(addrs[0]) == 0 {
			t.Fatalf("%q gave %v", text, addrs)
		}
	})
}

func FuzzBlobRequest(f *testing.F) {
	order := "98765432109876543210987654321098"
	f.Add([]byte(order + "\x01\x55\x12\x20" + "01234567890123456789012345678901"))
	f.Add([]byte(order + "\x12\x20" + "01234567890123456789012345678901"))
	f.Add([]byte(order[1:]))
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > blob.MaxRequest {
			return
		}
		w, err := blob.Request.Decode(in)
		if err != nil {
			return
		}
		if !bytes.Equal(blob.Request.Encode(w), in) {
			t.Fatal("the request reads back different")
		}
		_ = w.block.String()
	})
}
