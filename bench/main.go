// Bench measures Tasq, a plain program that writes the same rows, and its peers, all on the same SQLite driver, in one
// interleaved run: the first run of everything, then the second of everything, and so on. It prints medians
// with ranges, the ratios of runs that shared a round, and where Tasq stands against its targets.
//
//	go run .            # 5 rounds, about an hour; needs 20 GB of disk
//	go run . -quick     # 3 rounds of shorter runs on smaller files, six to ten minutes
//
// It also measures the verification of nets, against a naive search. The models of others that this needs are no part
// of the repository: without them it is left out, and the report says where to put them.
//
// Every measurement is a process of its own. What a figure is, and how it was counted, stands in docs/benchmarks.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/tasq-dev/tasq/internal/modeltest"
)

func main() {
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func start() error {
	quick := flag.Bool("quick", false, "shorter runs, smaller files, three rounds")
	rounds := flag.Int("rounds", 0, "rounds; 0 is 5, or 3 with -quick")
	only := flag.String("only", "", "measure only what this regular expression matches; see plan.go for the names")
	dir := flag.String("dir", "", "folder for the files, on the disk to measure; empty: the system's for temporary files")
	profile := flag.String("profile", "", "folder for CPU profiles of the first round")
	length := flag.Duration("length", 0, "how long one run is measured; 0 is 3 s, or 1 s with -quick")
	finished := flag.Int("finished", 0, "finished cases that pg-growth makes, of 3.7 KB each; 0 is 5 million, or 300,000 with -quick")
	verbose := flag.Bool("v", false, "name the nets that take longest to verify")
	name := flag.String("child", "", "for the program itself: the measurement that this process makes")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unknown argument %q; see -help", flag.Arg(0))
	}
	if *name != "" {
		return child(*name, newJob(*dir, *quick).lasting(*length).verbosely(*verbose).holding(*finished), *profile)
	}
	want, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("flag -only: %w", err)
	}
	if *rounds <= 0 {
		*rounds = newJob("", *quick).pick(3, 5)
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	root, err := os.MkdirTemp(*dir, "tasq-bench")
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b := &bench{ctx: ctx, exe: exe, root: root, profile: *profile, quick: *quick, verbose: *verbose, length: *length, finished: *finished,
		results: make(map[string]map[string]sample)}
	return errors.Join(b.all(want, *rounds), os.RemoveAll(root))
}

// all runs every step in every round, and prints the report.
func (b *bench) all(want *regexp.Regexp, rounds int) error {
	began := time.Now()
	if b.profile != "" {
		if err := os.MkdirAll(b.profile, 0o755); err != nil {
			return err
		}
	}
	sync, err := diskSync(b.root)
	if err != nil {
		return err
	}
	load := loadAverage()
	for round := range rounds {
		for _, s := range steps {
			if !want.MatchString(s.name) || round > 0 && (s.once || s.rare && b.quick) || s.long && b.quick {
				continue
			}
			if !b.has(s) {
				continue
			}
			fmt.Fprintf(os.Stderr, "\rround %d of %d: %-20s %s", round+1, rounds, s.name, time.Since(began).Round(time.Second))
			if err := b.measure(s, round); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(os.Stderr, "\r%-60s\r", "")
	b.report(os.Stdout, header{rounds: rounds, sync: sync, load: load, took: time.Since(began)})
	return nil
}

// has reports whether what the step needs is here, and notes for the report if it is not.
func (b *bench) has(s step) bool {
	if s.server && !b.hasServer() {
		return false
	}
	if s.needs == "" {
		return true
	}
	_, err := modeltest.Find(s.needs)
	if err != nil && !slices.Contains(b.absent, s.needs) {
		b.absent = append(b.absent, s.needs)
	}
	return err == nil
}
