package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// server is the first process of the PostgreSQL server that is measured, if it is on this machine; "" otherwise.
var server string

// findServer looks for the server of a connection on this machine.
func findServer(c *pgx.Conn) {
	var pid int // of the server's process for the connection
	if c.QueryRow(noTimeout, "SELECT pg_backend_pid() WHERE inet_server_addr() <<= inet '127.0.0.0/8'").Scan(&pid) != nil {
		return
	}
	if p, err := processStat(strconv.Itoa(pid)); err == nil {
		server = p.parent
	}
}

// serverCPU is the time that all processes of the server have worked, those that have ended too; 0 if it is not on this machine. A process that
// ends meanwhile would be counted twice, or not at all: then it looks again.
func serverCPU() time.Duration {
	if server == "" {
		return 0
	}
	for {
		before, err := processStat(server)
		if err != nil {
			return 0
		}
		sum := before.own + before.ended + children()
		if after, err := processStat(server); err != nil || after.ended == before.ended {
			return sum
		}
	}
}

func children() (sum time.Duration) {
	all, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed
	for _, path := range all {
		if p, err := processStat(filepath.Base(path)); err == nil && p.parent == server {
			sum += p.own
		}
	}
	return sum
}

// osProcess is what the operating system reports of a process: the time that it has worked, and that its children have which ended.
type osProcess struct {
	parent     string
	own, ended time.Duration
}

func processStat(pid string) (p osProcess, err error) {
	text, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return p, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // behind the name
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return p, fmt.Errorf("/proc/%s/stat: %q", pid, text)
	}
	const tick = 10 * time.Millisecond
	ticks := func(field int) time.Duration {
		n, bad := strconv.ParseInt(fields[field], 10, 64)
		if bad != nil {
			err = bad
		}
		return time.Duration(n) * tick
	}
	p = osProcess{parent: fields[1], own: ticks(11) + ticks(12), ended: ticks(13) + ticks(14)}
	return p, err
}
