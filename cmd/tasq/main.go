// Command tasq looks into a database of Tasq and acts on it, runs scenario files, and draws nets; see tasq -h.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/cli"
	"github.com/tasq-dev/tasq/cmd/tasq/internal/demo"
)

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // a command reads much and holds little of it: a quarter less of the CPU for some 20 MB
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	streams := cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	os.Exit(cli.Main(ctx, os.Args[1:], streams, cli.Registry{Recipes: demo.Registry, Demo: demo.Command}))
}
