// Command tally is the whole of Tally: every role of the network, the chain and
// the tools, behind one command line.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/tally-network/tally/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	os.Exit(cli.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
