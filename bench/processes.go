package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"

	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store/postgres"
)

// callerProcess is the name of a process that works for [processes], on the database that its folder names; the number of its callers follows.
const callerProcess = "pg-callers-"

// callersInAll is how many callers the processes have together.
const callersInAll = 64

// callIn is what such a process does: it opens an engine, and measures cases on request.
func callIn(callers string, r job) error {
	n, err := strconv.Atoi(callers)
	if err != nil {
		return err
	}
	e, err := engine.Config{Workers: 64, Logger: quiet}.Open(noTimeout, postgres.Open(r.dir), oneTask)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return errors.Join(err, e.Close())
	}
	before := used()
	m, err := load(n, r.span, func(int) error {
		id, err := oneTask.Start(noTimeout, e, anOrder)
		if err == nil {
			_, err = e.Wait(noTimeout, id)
		}
		return err
	})
	if err = errors.Join(err, e.Close()); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(m.since(before, m["n"]))
}

// caller is such a process.
type caller struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func newCaller(r job, callers int) (*caller, error) {
	c := &caller{cmd: exec.Command(os.Args[0], "-child", callerProcess+strconv.Itoa(callers), "-dir", r.dsn,
		"-length", r.span.length.String(), "-quick="+strconv.FormatBool(r.quick))}
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err = c.cmd.Start(); err == nil {
		_, err = c.out.ReadString('\n')
	}
	return c, err
}

func (c *caller) result() (m metrics, err error) {
	err = json.NewDecoder(c.out).Decode(&m)
	return m, errors.Join(err, c.in.Close(), c.cmd.Wait())
}

// processes is the closed loop of [cases] with its callers in so many processes, each with an engine of its own.
func processes(r job, n int) (metrics, error) {
	var all []*caller
	for range n {
		c, err := newCaller(r, callersInAll/n)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	before := used()
	for _, c := range all {
		if _, err := fmt.Fprintln(c.in); err != nil {
			return nil, err
		}
	}
	m := metrics{}
	for _, c := range all {
		one, err := c.result()
		if err != nil {
			return nil, err
		}
		m["rate"] += one["rate"]
		m["n"] += one["n"]
		m["cpu"] += one["cpu"] * one["n"]
	}
	cpu := m["cpu"] / m["n"]
	m.since(before, m["n"])
	m["cpu"] = cpu // of the processes that call, and not of this one
	return m, nil
}
