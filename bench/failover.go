package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store/postgres"
)

// failoverMember is the name of a process that works for [failover], on the database that its folder names.
const failoverMember = "pg-failover-member"

// members is how many processes there are, of which one is killed.
const members = 3

// held is a workflow whose function is begun, and noted with its process, and does not end in that process; in another one it ends at once.
func held(dsn string) *builder.FuncRef[int, int] {
	return builder.MustFunc("held", func(ctx context.Context, n int) (int, error) {
		c, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return 0, err
		}
		defer c.Close(noTimeout)
		tag, err := c.Exec(ctx, "INSERT INTO held VALUES ($1, $2) ON CONFLICT DO NOTHING", n, os.Getpid())
		if err != nil || tag.RowsAffected() == 0 {
			return n, err
		}
		<-ctx.Done()
		return 0, ctx.Err()
	})
}

// member works until its standard input ends.
func member(dsn string) error {
	e, err := engine.Config{Workers: 4, Logger: quiet}.Open(noTimeout, postgres.Open(dsn), held(dsn))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, e.Close())
}

// process is a member as a process.
type process struct {
	cmd *exec.Cmd
	in  io.Closer
}

func newProcess(dsn string) (*process, error) {
	p := &process{cmd: exec.Command(os.Args[0], "-child", failoverMember, "-dir", dsn)}
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil && strings.TrimSpace(line) != "ready" {
		err = fmt.Errorf("the member said %q", line)
	}
	return p, err
}

// failover measures the time from the kill -9 of one of three processes to the result, from another one, of the job that it was doing. The
// engine that waits for it is a fourth one, without workers.
func failover(r job) (m metrics, err error) {
	c, err := pgx.Connect(noTimeout, r.dsn)
	if err != nil {
		return nil, err
	}
	defer c.Close(noTimeout)
	if _, err := c.Exec(noTimeout, "CREATE TABLE held (n int PRIMARY KEY, pid int)"); err != nil {
		return nil, err
	}
	w := held(r.dsn)
	e, err := engine.Config{Workers: -1, Logger: quiet}.Open(noTimeout, postgres.Open(r.dsn), w)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	all := make(map[int]*process, members)
	defer func() {
		for _, p := range all {
			_ = p.in.Close()
			_ = p.cmd.Wait()
		}
	}()
	took := make([]time.Duration, r.pick(5, 20))
	for i := range took {
		for len(all) < members {
			p, err := newProcess(r.dsn)
			if err != nil {
				return nil, err
			}
			all[p.cmd.Process.Pid] = p
		}
		if took[i], err = failOnce(c, e, w, i, all); err != nil {
			return nil, err
		}
	}
	m = waits(took)
	m["max"], m["n"] = ms(took[len(took)-1]), float64(len(took))
	return m, nil
}

// failOnce has a job begun, kills the process that does it, and waits for the result.
func failOnce(c *pgx.Conn, e *engine.Engine, w *builder.FuncRef[int, int], n int, all map[int]*process) (time.Duration, error) {
	run, err := w.Run(noTimeout, e, n)
	if err != nil {
		return 0, err
	}
	pid := 0
	for pid == 0 {
		if err := c.QueryRow(noTimeout, "SELECT COALESCE((SELECT pid FROM held WHERE n = $1), 0)", n).Scan(&pid); err != nil {
			return 0, err
		}
		time.Sleep(10 * time.Millisecond)
	}
	p := all[pid]
	if p == nil {
		return 0, fmt.Errorf("job %d is held by process %d, which is no member", n, pid)
	}
	delete(all, pid)
	died := time.Now()
	if err := p.cmd.Process.Kill(); err != nil {
		return 0, err
	}
	_ = p.cmd.Wait() // it was killed, which is an error
	if _, err := run.Result(noTimeout, e); err != nil {
		return 0, err
	}
	return time.Since(died), nil
}
