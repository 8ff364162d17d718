// Pages measures the pages of package admin on a large database: how long the server takes for each address, and what a thousand open pages cost.
//
//	go run ./pages -dir DIR            # a million items, and a case of a hundred thousand entries; minutes the first time
//	go run ./pages -dir DIR -cases 5000 -entries 10000
//	go run ./pages -dir DIR -check     # exits with 1 if a target of check.go is missed
//	go run ./pages -postgres -cases 5000 -entries 10000
//	go run ./pages -dir DIR -repairs   # repairs of cases and incidents instead of pages, on a new database
//
// The database is made in the folder, and used again by the next run that asks for the same sizes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"runtime/pprof"
	"time"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
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
	incidents := flag.Int("incidents", 10_000, "open incidents, of one case each")
	entries := flag.Int("entries", 100_000, "entries of the journal of one case")
	rounds := flag.Int("rounds", 20, "how often each page is asked for")
	viewers := flag.Int("viewers", 1000, "how many look at one page that changes; 0 leaves that out")
	length := flag.Duration("length", 10*time.Second, "how long they look")
	server := flag.Bool("postgres", false, "the database is on PostgreSQL: the server of TASQ_TEST_POSTGRES, or one that is started for this run")
	think := flag.Duration("think", 3*time.Second, "how long a user looks at a case before the first look at its past")
	only := flag.String("only", "", "ask for the addresses alone that this `expression` matches")
	check := flag.Bool("check", false, "exit with 1 if a target is missed")
	repairs := flag.Bool("repairs", false, "measure repairs instead of pages, on a new database: they use up what they repair")
	address := flag.String("look", "", "be the viewers of another run of this program: read the events of an `address` until standard input ends")
	profile := flag.String("cpuprofile", "", "write a profile of the requests and the viewers into this `file`")
	flag.Parse()
	if *address != "" {
		return look(context.Background(), *address, *viewers)
	}
	if (*dir == "") != *server || flag.NArg() > 0 {
		return fmt.Errorf("say where the database is to be with -dir or -postgres; see -help")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	path := fmt.Sprintf("%s/pages-%d-%d.db", *dir, *cases, *entries)
	var o store.Opener = sqlite.File(path, sqlite.LoseLastCommits())
	if *server {
		dsn, err := pgtest.Durable()
		if err != nil {
			return err
		}
		o = postgres.Open(dsn, postgres.Schema(fmt.Sprintf("pages_%d_%d", *cases, *entries)))
	}
	actions := bulk.New(engine.Code)
	e, err := engine.Config{Workers: 8, Logger: slog.New(slog.DiscardHandler)}.Open(ctx, o, claim, long, parcel, actions)
	if err != nil {
		return err
	}
	defer e.Close()
	w, err := fill(ctx, e, *cases, *entries, *incidents)
	if err != nil {
		return err
	}
	if *repairs {
		return w.repair(ctx, e, actions, *rounds)
	}
	pages := admin.Handler(e, admin.Config{Access: admin.AllowAll, Logger: slog.New(slog.DiscardHandler)})
	chosen, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	var t targets
	if err := profiled(*profile, func() error {
		if err := measure(ctx, pages, w, &t, w.addresses(chosen), *rounds, *think); err != nil || *viewers == 0 {
			return err
		}
		return watch(ctx, e, pages, w, &t, *viewers, *length)
	}); err != nil {
		return err
	}
	if *check {
		return t.err()
	}
	return nil
}

// profiled calls f, and writes a profile of it into a file, if there is a name for one.
func profiled(name string, f func() error) error {
	if name == "" {
		return f()
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return err
	}
	err = f()
	pprof.StopCPUProfile()
	return errors.Join(err, file.Close())
}
