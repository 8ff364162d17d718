package cli_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/cli"
	real "github.com/tasq-dev/tasq/cmd/tasq/internal/demo"
	"github.com/tasq-dev/tasq/internal/testsize"
)

// programs are the commands that a script can run: tasq with a recipe of its own, risky with one that is unsound, fussy with one that rejects
// everything, joiner with a function of steps, bare without any, full as cmd/tasq is.
var programs = map[string]func() cli.Registry{
	"tasq":   func() cli.Registry { return cli.Registry{Recipes: recipes(article()), Demo: demo} },
	"bare":   func() cli.Registry { return cli.Registry{} },
	"full":   func() cli.Registry { return cli.Registry{Recipes: real.Registry, Demo: real.Command} },
	"joiner": func() cli.Registry { return cli.Registry{Recipes: recipes(joining())} },
	"risky":  func() cli.Registry { return cli.Registry{Recipes: recipes(risky())} },
	"fussy":  func() cli.Registry { return cli.Registry{Recipes: recipes(fussy())} },
}

// settable are the variables that a script may set for the commands it runs.
var settable = []string{"TASQ_DB", "TASQ_TEST_POSTGRES", "USER"}

// resident runs the commands of one script, one after the other, in one process. Starting a process takes longer than most commands do: with
// a process for each of the 800 commands, the scripts take twice the processor time.
type resident struct {
	process *exec.Cmd
	to      io.WriteCloser
	calls   *gob.Encoder
	replies *gob.Decoder
	stderr  bytes.Buffer
}

// order is one command, and reply is its result.
type (
	order struct {
		Program, Dir string
		Args, Env    []string
	}
	reply struct {
		Code     int
		Out, Err []byte
	}
)

// start starts the process.
func (r *resident) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	r.process = &exec.Cmd{Path: self, Args: []string{"resident"}, Stderr: &r.stderr}
	if r.to, err = r.process.StdinPipe(); err != nil {
		return err
	}
	from, err := r.process.StdoutPipe()
	if err != nil {
		return err
	}
	r.calls, r.replies = gob.NewEncoder(r.to), gob.NewDecoder(from)
	return r.process.Start()
}

// do runs a command in the process, which the first one starts.
func (r *resident) do(c order) (reply, error) {
	var answer reply
	if r.process == nil {
		if err := r.start(); err != nil {
			return answer, err
		}
	}
	err := r.calls.Encode(c)
	if err == nil {
		err = r.replies.Decode(&answer)
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", errors.Join(err, r.stop()), &r.stderr)
	}
	return answer, err
}

func (r *resident) stop() error {
	if r.process == nil {
		return nil
	}
	process := r.process
	r.process = nil
	return errors.Join(r.to.Close(), process.Wait())
}

// serve is the main function of the process.
func serve() {
	testsize.Apply()
	calls, replies := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.Stdout)
	for {
		var c order
		err := calls.Decode(&c)
		if errors.Is(err, io.EOF) {
			return
		}
		var answer reply
		if err == nil {
			answer, err = c.run()
		}
		if err == nil {
			err = replies.Encode(answer)
		}
		if err != nil {
			panic(err)
		}
	}
}

func (c order) run() (reply, error) {
	os.Clearenv()
	for _, pair := range c.Env {
		name, value, _ := strings.Cut(pair, "=")
		if err := os.Setenv(name, value); err != nil {
			return reply{}, err
		}
	}
	if err := os.Chdir(c.Dir); err != nil {
		return reply{}, err
	}
	var out, errs bytes.Buffer
	code := cli.Main(context.Background(), c.Args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, programs[c.Program]())
	return reply{Code: code, Out: out.Bytes(), Err: errs.Bytes()}, nil
}

// script is what a script's own commands know about it.
type script struct {
	resident resident
	env      []string
}

// scriptKey is the key of a script among the values of its environment.
const scriptKey = "script"

// setup prepares a script.
func setup(env *testscript.Env) error {
	env.Setenv("USER", "ann")
	// The race detector would have each process sleep a second at its end, for goroutines that are still running; these have ended when the
	// engine is closed.
	env.Setenv("GORACE", "atexit_sleep_ms=10")
	s := &script{env: slices.Clone(env.Vars)}
	env.Values[scriptKey] = s
	env.Defer(func() {
		if err := s.resident.stop(); err != nil {
			env.T().Fatal(err, s.resident.stderr.String())
		}
	})
	return nil
}

// execute runs a command and returns its exit code. In the nightly form of the tests each command is a process. In the others only those
// that are not in programs are, and those after the word exec, such as a command that reads its standard input.
func execute(ts *testscript.TestScript, args []string) int {
	process := testsize.Nightly()
	if args[0] == "exec" {
		process, args = true, args[1:]
	}
	if _, ok := programs[args[0]]; ok && !process {
		return ts.Value(scriptKey).(*script).execute(ts, args)
	}
	err := ts.Exec(args[0], args[1:]...)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	ts.Check(err)
	return 0
}

// execute runs a command in the process of the script.
func (s *script) execute(ts *testscript.TestScript, args []string) int {
	env := slices.Clone(s.env)
	for _, name := range settable {
		env = append(env, name+"="+ts.Getenv(name))
	}
	answer, err := s.resident.do(order{Program: args[0], Args: args[1:], Dir: ts.MkAbs("."), Env: env})
	ts.Check(err)
	_, err = ts.Stdout().Write(answer.Out)
	ts.Check(err)
	_, err = ts.Stderr().Write(answer.Err)
	ts.Check(err)
	return answer.Code
}

// perform runs a command that is to succeed, or with ! to fail: run tasq cases
func perform(ts *testscript.TestScript, neg bool, args []string) {
	if code := execute(ts, args); (code != 0) != neg {
		ts.Fatalf("%s exited with %d", strings.Join(args, " "), code)
	}
}

// exits runs a command and wants an exit code: exits 3 tasq history ...
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got := execute(ts, args[1:]); got != want {
		ts.Fatalf("%s exited with %d, not with %d", strings.Join(args[1:], " "), got, want)
	}
}

// A process that runs the commands of a script runs each as a process of its own would: in the folder and with the variables of the script.
func TestACommandRunsInTheFolderOfItsScript(t *testing.T) {
	r := &resident{}
	for _, name := range []string{"a.db", "b.db"} {
		dir := t.TempDir()
		answer, err := r.do(order{Program: "bare", Args: []string{"cases"}, Dir: dir, Env: []string{"TASQ_DB=" + name}})
		if err != nil {
			t.Fatal(err)
		}
		if answer.Code != cli.ExitDatabase || !strings.Contains(string(answer.Err), name) {
			t.Fatalf("exited with %d: %s", answer.Code, answer.Err)
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
}
