//go:build unix

package engine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/workitem"
)

// envFleet has the database of a process of the test.
const envFleet = "TASQ_FLEET_DSN"

// numbered is a question to another process.
type numbered struct {
	N int
	question
}

// answer is what a process answers.
type answer struct {
	N       int
	Refused bool
	State   workitem.State
	Starts  int
	Error   string
	Nothing bool // it happened not
}

// TestFleetMember is a process of [TestProcessesThatDie], until its standard input ends. It does the operations that it reads there, several at once,
// and writes what was answered.
func TestFleetMember(t *testing.T) {
	dsn := os.Getenv(envFleet)
	if dsn == "" {
		t.Skip("it is the child of TestProcessesThatDie")
	}
	e, err := engine.Config{Workers: 4, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))}.
		Open(context.Background(), postgres.Open(dsn), transfer(t), tallied(t))
	require.NoError(t, err)
	fmt.Println("ready")
	var one sync.Mutex
	var all sync.WaitGroup
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var q numbered
		if in.Decode(&q) != nil {
			break
		}
		all.Go(func() {
			found, err := asks(e)(context.Background(), q.question)
			a := answer{N: q.N, Refused: found.refused, State: found.state, Starts: found.starts, Nothing: errors.Is(err, store.ErrConflict)}
			if err != nil {
				a.Error = err.Error()
			}
			one.Lock()
			defer one.Unlock()
			_ = out.Encode(a) // the other process may be gone
		})
	}
	all.Wait()
	require.NoError(t, e.Close())
}

// member is a process that runs TestFleetMember.
type member struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	mu      sync.Mutex
	asked   int
	waiting map[int]chan answer
	gone    chan struct{} // is closed when it answers no more
}

func (f fleetOf) process() *member {
	f.t.Helper()
	p := &member{cmd: exec.Command(os.Args[0], "-test.run=^TestFleetMember$", "-test.count=1"), waiting: make(map[int]chan answer), gone: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), envFleet+"="+f.dsn)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	require.NoError(f.t, err)
	p.in, err = p.cmd.StdinPipe()
	require.NoError(f.t, err)
	require.NoError(f.t, p.cmd.Start())
	f.t.Cleanup(p.end)
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "ready") {
	}
	require.NoError(f.t, lines.Err())
	go p.read(lines)
	return p
}

// read gives the answers to those who wait for them.
func (p *member) read(lines *bufio.Scanner) {
	defer close(p.gone)
	for lines.Scan() {
		var a answer
		if json.Unmarshal(lines.Bytes(), &a) != nil {
			continue // what the test prints as it ends
		}
		p.mu.Lock()
		p.waiting[a.N] <- a
		delete(p.waiting, a.N)
		p.mu.Unlock()
	}
}

// ask has the process do an operation. One that is stopped gets some time to answer.
func (p *member) ask(ctx context.Context, q question) (observed, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	answered := make(chan answer, 1)
	p.mu.Lock()
	p.asked++
	n := p.asked
	p.waiting[n] = answered
	err := json.NewEncoder(p.in).Encode(numbered{n, q})
	p.mu.Unlock()
	if err != nil {
		return observed{}, err
	}
	select {
	case a := <-answered:
		return a.observed()
	case <-p.gone:
	case <-ctx.Done():
	}
	return observed{}, errors.New("the process does not answer")
}

func (a answer) observed() (observed, error) {
	switch {
	case a.Nothing:
		return observed{}, store.ErrConflict
	case a.Error != "":
		return observed{}, errors.New(a.Error)
	}
	return observed{refused: a.Refused, register: register{state: a.State, starts: a.Starts}}, nil
}

// end has the process close its engine.
func (p *member) end() {
	_ = p.in.Close()
	_ = p.cmd.Wait() // it may have been killed
}

func (p *member) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(s))
}
