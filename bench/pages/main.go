// Pages measures the pages of package admin on a large database: how long the server takes for each address, and what a thousand open pages cost.
//
//	go run ./pages -dir DIR            # a million items, and a case of a hundred thousand entries; minutes the first time
//	go run ./pages -dir DIR -cases 5000 -entries 10000
//
// The database is made in the folder, and used again by the next run that asks for the same sizes.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store/sqlite"
)

func main() {
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, "pages:", err)
		os.Exit(1)
	}
}

func start() error {
	dir := flag.String("dir", "", "folder for the database, which stays there")
	cases := flag.Int("cases", 250_000, "cases of four items each")
	entries := flag.Int("entries", 100_000, "entries of the journal of one case")
	rounds := flag.Int("rounds", 20, "how often each page is asked for")
	viewers := flag.Int("viewers", 1000, "how many look at one page that changes; 0 leaves that out")
	length := flag.Duration("length", 10*time.Second, "how long they look")
	flag.Parse()
	if *dir == "" || flag.NArg() > 0 {
		return fmt.Errorf("say where the database is to be with -dir; see -help")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	path := fmt.Sprintf("%s/pages-%d-%d.db", *dir, *cases, *entries)
	e, err := engine.Config{Workers: 8, Logger: slog.New(slog.DiscardHandler)}.Open(ctx, sqlite.File(path, sqlite.LoseLastCommits()), claim, long)
	if err != nil {
		return err
	}
	defer e.Close()
	w, err := fill(ctx, e, *cases, *entries)
	if err != nil {
		return err
	}
	pages := admin.Handler(e, admin.Config{Access: admin.AllowAll, Logger: slog.New(slog.DiscardHandler)})
	if err := measure(ctx, pages, w.addresses(), *rounds); err != nil {
		return err
	}
	if *viewers == 0 {
		return nil
	}
	return watch(ctx, e, pages, w, *viewers, *length)
}
