package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// look is the process of the viewers: each reads the events of an address until standard input ends. Standard output gets the line "ready" when each
// viewer has got the first event. For each line of standard input it gets a line for each later event, with the number of the viewer and the time in
// nanoseconds since 1970, and the line "end". It writes nothing in between, which would take time of the process that is measured.
func look(ctx context.Context, address string, viewers int) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := sightings{times: make([][]time.Time, viewers)}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: viewers, ReadBufferSize: 32 << 10}}
	failed := make(chan error, viewers)
	var all, ready sync.WaitGroup
	for viewer := range viewers {
		ready.Add(1)
		all.Go(func() {
			first := sync.OnceFunc(ready.Done)
			defer first()
			if err := events(ctx, client, address, func(at time.Time) {
				first()
				s.add(viewer, at)
			}); err != nil && ctx.Err() == nil {
				failed <- err
			}
		})
	}
	ready.Wait()
	fmt.Println("ready")
	for asked := bufio.NewScanner(os.Stdin); asked.Scan(); { // it ends with the process that has started this one
		if err := s.write(os.Stdout); err != nil {
			return err
		}
	}
	stop()
	all.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// sightings are the times of the events that each viewer has got.
type sightings struct {
	mu    sync.Mutex
	times [][]time.Time
}

func (s *sightings) add(viewer int, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times[viewer] = append(s.times[viewer], at)
}

func (s *sightings) write(to io.Writer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := bufio.NewWriter(to)
	for viewer, times := range s.times {
		for _, at := range times {
			fmt.Fprintln(lines, viewer, at.UnixNano())
		}
	}
	fmt.Fprintln(lines, "end")
	return lines.Flush()
}

// events calls got for each event of an address.
func events(ctx context.Context, client *http.Client, address string, got func(time.Time)) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, answer.Status)
	}
	beginning := true
	for lines := bufio.NewReaderSize(answer.Body, 32<<10); ; {
		part, err := lines.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if beginning && bytes.HasPrefix(part, []byte("event:")) {
			got(time.Now())
		}
		beginning = err == nil
	}
}

// audience is the process of the viewers, seen from the one that has started it.
type audience struct {
	command *exec.Cmd
	input   io.WriteCloser // the process ends when it is closed
	output  *bufio.Scanner
	viewers int
}

// begin starts the viewers of an address, and returns when each has got its first event.
func begin(ctx context.Context, address string, viewers int) (*audience, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, program, "-look", address, "-viewers", strconv.Itoa(viewers))
	c.Stderr = os.Stderr
	input, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	a := &audience{command: c, input: input, output: bufio.NewScanner(output), viewers: viewers}
	if !a.output.Scan() {
		return nil, fmt.Errorf("the viewers have ended: %w", a.end())
	}
	return a, nil
}

// seen is when each viewer has got events so far.
func (a *audience) seen() ([][]time.Time, error) {
	if _, err := fmt.Fprintln(a.input, "report"); err != nil {
		return nil, err
	}
	all := make([][]time.Time, a.viewers)
	for a.output.Scan() && a.output.Text() != "end" {
		var viewer, nanos int64
		if _, err := fmt.Sscan(a.output.Text(), &viewer, &nanos); err != nil {
			return nil, err
		}
		all[viewer] = append(all[viewer], time.Unix(0, nanos))
	}
	return all, a.output.Err()
}

// without is how many viewers have got no event since a moment.
func without(seen [][]time.Time, since time.Time) int {
	n := 0
	for _, events := range seen {
		if len(events) == 0 || events[len(events)-1].Before(since) {
			n++
		}
	}
	return n
}

// delays are the times from changes to the events that viewers got after them, unsorted. Changes are in order.
func delays(seen [][]time.Time, changes []time.Time) []time.Duration {
	var all []time.Duration
	for _, events := range seen {
		for _, at := range events {
			last := -1
			for last+1 < len(changes) && !changes[last+1].After(at) {
				last++
			}
			if last >= 0 {
				all = append(all, at.Sub(changes[last]))
			}
		}
	}
	return all
}

// end ends the viewers.
func (a *audience) end() error {
	_ = a.input.Close()
	return a.command.Wait()
}
