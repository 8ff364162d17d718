package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// look is the process of the viewers: each reads the events of an address until standard input ends. Standard output gets the line "ready" when
// each viewer has got the first event, and for each later one a line with the number of the viewer and the time, in nanoseconds since 1970.
func look(ctx context.Context, address string, viewers int) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the process that has started this one
		stop()
	}()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: viewers}}
	failed := make(chan error, viewers)
	var all, ready sync.WaitGroup
	for viewer := range viewers {
		ready.Add(1)
		all.Go(func() {
			first := sync.OnceFunc(ready.Done)
			defer first()
			if err := events(ctx, client, address, func(at time.Time) {
				first()
				fmt.Println(viewer, at.UnixNano()) // one write, so lines of several viewers do not mix
			}); err != nil && ctx.Err() == nil {
				failed <- err
			}
		})
	}
	ready.Wait()
	fmt.Println("ready")
	all.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
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
	for lines := bufio.NewReader(answer.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		if strings.HasPrefix(line, "event:") {
			got(time.Now())
		}
	}
}

// audience is the process of the viewers, seen from the one that has started it.
type audience struct {
	command *exec.Cmd
	input   io.Closer     // the process ends when it is closed
	ready   chan struct{} // closed when each viewer looks
	ended   chan struct{} // closed when the output has ended

	mu   sync.Mutex
	seen [][]time.Time // events of each viewer
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
	a := &audience{command: c, input: input, ready: make(chan struct{}), ended: make(chan struct{}), seen: make([][]time.Time, viewers)}
	go a.read(output)
	select {
	case <-a.ready:
		return a, nil
	case <-a.ended:
		return nil, fmt.Errorf("the viewers have ended: %w", a.end())
	}
}

func (a *audience) read(output io.Reader) {
	defer close(a.ended)
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if lines.Text() == "ready" {
			close(a.ready)
			continue
		}
		var viewer, nanos int64
		if n, err := fmt.Sscan(lines.Text(), &viewer, &nanos); n != 2 || err != nil {
			continue
		}
		a.mu.Lock()
		a.seen[viewer] = append(a.seen[viewer], time.Unix(0, nanos))
		a.mu.Unlock()
	}
}

// without is how many viewers have got no event since a moment.
func (a *audience) without(since time.Time) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, events := range a.seen {
		if len(events) == 0 || events[len(events)-1].Before(since) {
			n++
		}
	}
	return n
}

// delays are the times from changes to the events that viewers got after them, unsorted. Changes are in order.
func (a *audience) delays(changes []time.Time) []time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []time.Duration
	for _, events := range a.seen {
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
	<-a.ended
	return a.command.Wait()
}
