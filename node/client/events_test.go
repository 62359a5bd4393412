package client

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// A node that accepts and never speaks of events holds up nobody, and whoever hangs up meanwhile does not panic.
func TestNodesThatTellNoEvents(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // it accepts nothing: the kernel does
	rpc, err := NewRPC("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{RPC: rpc, Conn: conn}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.startEvents(ctx); err == nil {
		t.Error("it tells events")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
