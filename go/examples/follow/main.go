// SPDX-License-Identifier: Apache-2.0

// Follow prints the objects of a feed, then each change, one a line. With a cursor it goes on after the
// last line that it printed, also after it was killed:
//
//	go run kinf/examples/follow --cursor mine pods
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"kinf"
)

func main() {
	log.SetFlags(0)
	options := kinf.FollowOptions{}
	directory := flag.String("store", "", "the store's directory")
	flag.StringVar(&options.Cursor, "cursor", "", "name of the position to go on at")
	flag.StringVar(&options.Namespace, "namespace", "", "only objects of this namespace")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: follow [--store DIR] [--cursor NAME] [--namespace NS] FEED")
	}
	options.Feed = flag.Arg(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := follow(ctx, *directory, options, os.Stdout); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

// follow prints until the context ends.
func follow(ctx context.Context, directory string, options kinf.FollowOptions, out io.Writer) error {
	store, err := kinf.Open(directory, nil)
	if err != nil {
		return err
	}
	defer store.Close()
	follower, err := store.Follow(ctx, options)
	if err != nil {
		return err
	}
	for {
		event, err := follower.Next(ctx) // the event before it is handled
		switch {
		case errors.Is(err, kinf.ErrLapsed):
			fmt.Fprintln(out, "LAPSED") // objects that do not come again no longer exist
		case err != nil:
			return errors.Join(err, follower.Close()) // which writes the cursor
		case event.Type == kinf.Synced:
			fmt.Fprintln(out, "SYNC")
		default:
			fmt.Fprintln(out, event.Type, event.Object.Key, change(event))
		}
	}
}

// change says what an event did to the object's version.
func change(event kinf.Event) string {
	switch {
	case event.Type == kinf.Deleted:
		return "at " + event.Object.ResourceVersion
	case event.Old == nil:
		return event.Object.ResourceVersion
	}
	return event.Old.ResourceVersion + " -> " + event.Object.ResourceVersion
}
