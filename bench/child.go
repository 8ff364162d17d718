package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"
)

// child runs one step in this process and prints its metrics as one line of JSON.
func child(name string, r job, profile string) (err error) {
	if name == failoverMember {
		return member(r.dir)
	}
	if callers, ok := strings.CutPrefix(name, callerProcess); ok {
		return callIn(callers, r)
	}
	i := slices.IndexFunc(steps, func(s step) bool { return s.name == name })
	if i < 0 {
		return fmt.Errorf("there is no measurement named %q", name)
	}
	if err := countFiles(); err != nil {
		return fmt.Errorf("count file operations: %w", err)
	}
	if steps[i].kill {
		return crash(r, bufio.NewWriter(os.Stdout))
	}
	stop, err := profiles(profile, name)
	if err != nil {
		return err
	}
	m, err := steps[i].run(r)
	if err = errors.Join(err, stop()); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(m)
}

// profiles begins to take a profile of the CPU, and has stop write it with one of all allocations; "" takes none.
func profiles(dir, name string) (stop func() error, err error) {
	if dir == "" {
		return func() error { return nil }, nil
	}
	cpu, err := os.Create(filepath.Join(dir, name+".pprof"))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, errors.Join(err, cpu.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		allocs, err := os.Create(filepath.Join(dir, name+".allocs.pprof"))
		if err != nil {
			return errors.Join(err, cpu.Close())
		}
		return errors.Join(cpu.Close(), pprof.Lookup("allocs").WriteTo(allocs, 0), allocs.Close())
	}, nil
}

// bench runs steps in children and collects what they print.
type bench struct {
	ctx                context.Context // canceled when the run is broken off: the children end, and the files are removed
	exe, root, profile string
	quick, verbose     bool
	length             time.Duration
	finished           int
	results            map[string]map[string]sample // by step, then by metric
	noServer           error                        // why the steps that need a server were left out
	others             sample                       // share of the machine that others used, run by run
	absent             []string                     // archives without which some steps were left out
}

// measure runs one step. A step whose profile is taken is slower by a few percent, so that is done in the first round
// only.
func (b *bench) measure(s step, round int) error {
	dir := filepath.Join(b.root, "run")
	if s.shared != "" {
		dir = filepath.Join(b.root, s.shared)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	args := []string{"-child", s.name, "-dir", dir, "-quick=" + strconv.FormatBool(b.quick), "-length", b.length.String(),
		"-v=" + strconv.FormatBool(b.verbose), "-finished", strconv.Itoa(b.finished)}
	if round == 0 && b.profile != "" {
		args = append(args, "-profile", b.profile)
	}
	cmd := exec.CommandContext(b.ctx, b.exe, args...)
	cmd.Stderr = os.Stderr
	before, at := machineBusy(), time.Now()
	m, err := b.collect(cmd, s.kill)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	if busy := machineBusy() - before; busy > 0 {
		own := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		b.others = append(b.others, max(0, (busy-own).Seconds()/(time.Since(at).Seconds()*cores)))
	}
	if b.results[s.name] == nil {
		b.results[s.name] = make(map[string]sample)
	}
	for k, v := range m {
		b.results[s.name][k] = append(b.results[s.name][k], v)
	}
	if s.shared != "" {
		return nil
	}
	return os.RemoveAll(dir)
}

func (b *bench) collect(cmd *exec.Cmd, kill bool) (metrics, error) {
	if !kill {
		out, err := cmd.Output()
		if err != nil {
			return nil, err
		}
		var m metrics
		return m, json.Unmarshal(out, &m)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	said := make([]byte, len("full\n"))
	_, err = io.ReadFull(out, said)
	err = errors.Join(err, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed, which is an error
	if err == nil && !bytes.Equal(said, []byte("full\n")) {
		err = fmt.Errorf("the child said %q", said)
	}
	return nil, err
}
