package client

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A question to a node that starts again is asked until it answers. One that has never answered, as
// under a wrong address, is not waited for, nor is one that stays away.
func TestQuestionsOutliveARestart(t *testing.T) {
	gone := status.Error(codes.Unavailable, "error reading from server: EOF")
	blank := status.Error(codes.Unknown, "codespace sdk code 26: invalid height: context did not contain latest block height in either check state or finalize block state (43)")
	refused := status.Error(codes.NotFound, "no such lease")
	for name, x := range map[string]struct {
		replies []error // to one question after another, the last again and again
		asked   int     // how often in all, for two questions; 0: more than twice
		want    error   // of the second
	}{
		"answers":          {[]error{nil}, 2, nil},
		"refuses":          {[]error{nil, refused}, 2, refused},
		"starts again":     {[]error{nil, gone, blank, blank, nil}, 5, nil},
		"just started":     {[]error{blank, blank, nil}, 4, nil},
		"never answered":   {[]error{gone, gone}, 2, gone},
		"stays away":       {[]error{nil, gone}, 0, gone},
		"refused is there": {[]error{refused, gone, nil}, 3, nil},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			ask := patient(500 * time.Millisecond)
			var err error
			for range 2 {
				err = ask(t.Context(), "", nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
					asked++
					return x.replies[min(asked, len(x.replies))-1]
				})
			}
			if err != x.want || asked != x.asked && (x.asked > 0 || asked < 3) {
				t.Fatalf("asked %d times, %v", asked, err)
			}
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	ask := patient(time.Hour)
	_ = ask(ctx, "", nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil })
	stop()
	if err := ask(ctx, "", nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return gone }); err != gone {
		t.Fatalf("who has given up is kept waiting: %v", err)
	}
}
