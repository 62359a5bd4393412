package p2p

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A frame is a length of four bytes, big-endian, and as many bytes.
const prefixLen = 4

// A status is the first byte of a response; the frame after it holds the
// answer if it is statusOK, words for people if it is statusFailed, nothing
// otherwise.
type status byte

const (
	statusOK      status = iota
	statusFailed         // the handler returned an error
	statusRefused        // the handler returned ErrRefused
	statusBusy           // too many exchanges with this peer
	statuses
)

// maxWords bounds the bytes of an error that travels to a peer.
const maxWords = 512

// reserve asks for leave to allocate n bytes.
type reserve func(n int) error

func writeFrame(w io.Writer, head []byte, body []byte) error {
	head = binary.BigEndian.AppendUint32(head, uint32(len(body)))
	if len(body) <= 4<<10 {
		_, err := w.Write(append(head, body...))
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	_, err := w.Write(body)
	return err
}

func writeRequest(w io.Writer, body []byte) error { return writeFrame(w, nil, body) }

func writeResponse(w io.Writer, s status, body []byte) error {
	return writeFrame(w, []byte{byte(s)}, body)
}

// readFrame reads a frame of at most limit bytes.
func readFrame(r io.Reader, limit int, may reserve) ([]byte, error) {
	var prefix [prefixLen]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(prefix[:])
	if uint64(n) > uint64(limit) {
		return nil, fmt.Errorf("message of %d bytes, the limit is %d", n, limit)
	}
	if err := may(int(n)); err != nil {
		return nil, fmt.Errorf("message of %d bytes: %w", n, err)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, fmt.Errorf("message of %d bytes breaks off: %w", n, err)
	}
	return body, nil
}

// readResponse reads a status and its frame; limit bounds an answer.
func readResponse(r io.Reader, limit int, may reserve) (status, []byte, error) {
	var first [1]byte
	if _, err := io.ReadFull(r, first[:]); err != nil {
		return 0, nil, err
	}
	s := status(first[0])
	switch {
	case s >= statuses:
		return 0, nil, fmt.Errorf("unknown status %d", s)
	case s == statusFailed:
		limit = maxWords
	case s != statusOK:
		limit = 0
	}
	body, err := readFrame(r, limit, may)
	if errors.Is(err, io.EOF) { // after the status there is always a frame
		err = io.ErrUnexpectedEOF
	}
	return s, body, err
}
