package desk

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	errorsmod "cosmossdk.io/errors"

	"github.com/tally-network/tally/core/canon"
	"github.com/tally-network/tally/core/job"
	"github.com/tally-network/tally/node/consume"
)

// remote is the desk of another process.
type remote struct {
	pid    int
	client *http.Client
	stay   io.Closer
	leave  context.CancelFunc
	over   chan struct{}
}

// maxReply bounds an answer in bytes.
const maxReply = 1 << 20

// dial finds the desk of whoever has a home open.
func dial(ctx context.Context, dir string) (*remote, error) {
	path, err := socketOf(dir)
	if err != nil {
		return nil, err
	}
	r := &remote{over: make(chan struct{}), client: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		},
		DisableKeepAlives: true,
	}}}
	ctx, leave := context.WithCancel(ctx)
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://desk"+stayPath, nil)
	if err != nil {
		leave()
		return nil, err
	}
	// A process that was suspended takes connections, and answers nothing.
	slow := time.AfterFunc(patience, leave)
	reply, err := r.client.Do(q)
	if err != nil {
		leave()
		return nil, unanswered(slow, err)
	}
	r.stay, r.leave = reply.Body, leave
	var g greeting
	if err := json.NewDecoder(io.LimitReader(reply.Body, maxRequest)).Decode(&g); err != nil {
		return nil, errors.Join(unanswered(slow, fmt.Errorf("read its greeting: %w", err)), r.close())
	}
	if !slow.Stop() {
		return nil, errors.Join(errSilent, r.close())
	}
	if g.Version != version {
		return nil, errors.Join(fmt.Errorf("its desk speaks version %d, and this program %d: wait until it has ended, or run its program", g.Version, version), r.close())
	}
	r.pid = g.PID
	go func() {
		defer close(r.over)
		_, _ = io.Copy(io.Discard, io.LimitReader(reply.Body, maxRequest))
	}()
	return r, nil
}

// errSilent says that who has the home open takes a connection, and says nothing.
var errSilent = errors.New("it does not answer: let it go on, or end it")

// unanswered returns what went wrong: err, or that time ran out.
func unanswered(slow *time.Timer, err error) error {
	if slow.Stop() {
		return err
	}
	return errSilent
}

func (r *remote) gone() <-chan struct{} { return r.over }

func (r *remote) close() error {
	r.leave()
	return r.stay.Close()
}

// do asks for something, and reads the answer. Where the connection ends before one came, the error
// is errGone.
func (r *remote) do(ctx context.Context, method, path string, body io.Reader, into any) error {
	q, err := http.NewRequestWithContext(ctx, method, "http://desk"+path, body)
	if err != nil {
		return err
	}
	reply, err := r.client.Do(q)
	if err != nil {
		return r.lost(ctx, err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, maxReply))
	if err != nil {
		return r.lost(ctx, err)
	}
	if reply.StatusCode == http.StatusOK {
		if err := json.Unmarshal(text, into); err != nil {
			return fmt.Errorf("answer of process %d: %w", r.pid, err)
		}
		return nil
	}
	var f fault
	switch err := json.Unmarshal(text, &f); {
	case err != nil || f.Text == "":
		return fmt.Errorf("process %d answers %s with %s", r.pid, path, reply.Status)
	case f.Code != 0:
		return &refused{f.Text, errorsmod.ABCIError(f.Codespace, f.Code, f.Text)}
	}
	return errors.New(f.Text)
}

// refused is a refusal of the chain, in the words of the desk that heard of it.
type refused struct {
	text string
	is   error
}

func (e *refused) Error() string { return e.text }

func (e *refused) Unwrap() error { return e.is }

func (r *remote) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", errGone, err)
}

func (r *remote) buyer(ctx context.Context) (b consume.Buyer, err error) {
	err = r.do(ctx, http.MethodGet, buyerPath, nil, &b)
	return b, err
}

func (r *remote) post(ctx context.Context, o *job.Order, body io.Reader) error {
	return r.send(ctx, orderPath, o, body)
}

func (r *remote) keep(ctx context.Context, o *job.Order, body io.Reader) error {
	return r.send(ctx, filesPath, o, body)
}

// send sends an order and the content of its files.
func (r *remote) send(ctx context.Context, path string, o *job.Order, body io.Reader) error {
	b := canon.Marshal(o)
	whole := io.MultiReader(bytes.NewReader(binary.BigEndian.AppendUint32(nil, uint32(len(b)))), bytes.NewReader(b), body)
	return r.do(ctx, http.MethodPost, path, whole, &struct{}{})
}

func (r *remote) deliver(ctx context.Context, q DeliveryRequest) (out Delivery, err error) {
	b, err := json.Marshal(q)
	if err != nil {
		return out, err
	}
	err = r.do(ctx, http.MethodPost, deliveryPath, bytes.NewReader(b), &out)
	return out, err
}
