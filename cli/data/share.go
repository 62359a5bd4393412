package data

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tally-network/tally/internal/filelock"
	"github.com/tally-network/tally/node/consume/sharing"
	"github.com/tally-network/tally/p2p"
)

// shared is what tally data share tells of a file.
type shared struct {
	File   string `json:"file"`
	Source string `json:"source"` // as orders name it
	Bytes  int64  `json:"bytes"`
}

// shareKey is the name of the key in a home by which it shares. That of its roles may be in use meanwhile.
const shareKey = "share_key.pem"

func share(show Show, home *string) *cobra.Command {
	listen := ""
	cmd := &cobra.Command{
		Use: "share FILE…", Short: "Give files to whoever knows their names, from peer to peer",
		Long: `Reads the files, prints for each the source by which orders name it, and hands their blocks to
whoever asks for them, until it is stopped. Nothing is copied. Whoever knows a source can read
the file: so can all who see an order that names it. A file that changes is given no more.

It listens on this machine alone, unless --listen names another address: that of this machine where
others reach it, with a port that stays the same.`,
		Example: `  tally data share birds.parquet
  tally data share birds.parquet --listen /ip4/203.0.113.7/tcp/4101
  tally order new birds --data 'tally:bafk….1048576?filename=birds.parquet&peer=/ip4/…' --target species`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return give(cmd.Context(), show, filepath.Join(*home, shareKey), listen, args, progressOf(cmd.ErrOrStderr(), "reading"))
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "multiaddress to listen on (default: a free port of 127.0.0.1)")
	return cmd
}

// give shares files until a context is done.
func give(ctx context.Context, show Show, keyFile, listen string, files []string, progress func(name string, done, total int64)) (err error) {
	key, err := keyOf(keyFile)
	if err != nil {
		return err
	}
	lock, err := os.OpenFile(keyFile+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if taken, err := filelock.Try(lock); err != nil || taken { // two of one key on one port would each get the other's requests
		return errors.Join(err, fmt.Errorf("another tally data share of this home runs: stop it, and name all files in one command; or name another --home"))
	}
	o := p2p.Options{Key: key}
	if listen != "" {
		o.Listen = []string{listen}
	}
	h, err := p2p.New(o)
	if err != nil {
		return err
	}
	s, err := sharing.Share(ctx, h, files, progress)
	if err != nil {
		return errors.Join(err, h.Close())
	}
	defer func() { err = errors.Join(err, h.Close(), s.Close()) }()
	var all []shared
	for i, n := range s.URIs() {
		all = append(all, shared{files[i], n.String(), n.Ref.Size})
	}
	err = show(all, func(w io.Writer) {
		for _, f := range all {
			fmt.Fprintf(w, "%s, %d bytes:\n  %s\n", f.File, f.Bytes, f.Source)
		}
		fmt.Fprintln(w, "They are given to whoever asks by these names. Ctrl-C ends it.")
	})
	if err == nil {
		<-ctx.Done()
	}
	return err
}

// keyOf reads a key, and makes it the first time.
func keyOf(file string) (ed25519.PrivateKey, error) {
	key, err := p2p.LoadKey(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	return p2p.CreateKey(file)
}
