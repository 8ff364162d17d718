package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tasq-dev/tasq/activities"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/cmd/tasq/internal/cli"
	real "github.com/tasq-dev/tasq/cmd/tasq/internal/demo"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/net/verify"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workitem"
)

var update = flag.Bool("update", false, "write the outputs into the scripts")

// The scripts have [programs], and these: define, which makes a database that knows the workflows of tasq; joind, which starts the functions
// for its arguments and does what is to be done now; copied, which makes the database of another program; and owner, a service that runs
// the first on a database until it is interrupted. Each is a process of its own.
func TestMain(m *testing.M) {
	commands := map[string]func(){
		"owner":    owner,
		"define":   func() { define(os.Args[1]) },
		"copied":   func() { copied(os.Args[1]) },
		"joind":    func() { define(os.Args[1], os.Args[2:]...) },
		"resident": serve,
	}
	for name, reg := range programs {
		commands[name] = func() { run(reg()) }
	}
	testscript.Main(many{m}, commands)
}

// many runs more tests at a time than there are processors, as they wait for processes, servers and disks. The programs of the scripts have
// flags of their own.
type many struct{ *testing.M }

func (m many) Run() int {
	testsize.TempInMemory()
	testsize.Parallel(6)
	return m.M.Run()
}

func run(reg cli.Registry) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Main(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, reg)
	stop()
	os.Exit(code)
}

func recipes(all ...engine.Workflow) func() ([]engine.Workflow, error) {
	return func() ([]engine.Workflow, error) { return all, nil }
}

func demo(_ context.Context, _ io.Reader, out, _ io.Writer, args []string) error {
	_, err := fmt.Fprintln(out, "demo", strings.Join(args, " "))
	return err
}

type prompt struct {
	Text string `json:"text" validate:"required"`
}

type verdict struct {
	OK   bool   `json:"ok"`
	Note string `json:"note" validate:"required"`
}

// article is a workflow that is code: a draft by a function, and a review by a person. A prompt "fail" fails.
func article() *builder.Workflow[prompt] {
	b := builder.New[prompt]("article")
	draft := builder.Task(b, "draft", builder.Work[prompt, prompt]{
		Input: builder.CaseInput(b), Queue: "models",
		Run: func(_ context.Context, p prompt) (prompt, error) {
			if p.Text == "fail" {
				return p, &workitem.Failure{Code: "refused", Message: "the model refuses", Retryable: true}
			}
			return prompt{Text: "On " + p.Text}, nil
		},
		OnWorkItemStateChanged: activities.Retry(retry.Exponential(2, time.Hour)),
	})
	review := builder.Task(b, "review", builder.Work[prompt, verdict]{Input: builder.Output(draft), Queue: "editors"})
	b.Path(b.Start(), draft, review, b.End())
	w, err := b.Build()
	if err != nil {
		panic(err)
	}
	return w
}

// risky is a workflow that can end with work left over, as it allows.
func risky() *builder.Workflow[any] {
	b := builder.New[any]("risky", builder.AllowUnsound(verify.ImproperCompletion))
	register := builder.Task(b, "register", builder.Work[any, any]{Split: builder.And})
	police := builder.Task(b, "police", builder.Work[any, any]{})
	damage := builder.Task(b, "damage", builder.Work[any, any]{})
	settle := builder.Task(b, "settle", builder.Work[any, any]{Join: builder.Xor})
	b.Path(b.Start(), register, police, settle, b.End())
	b.Path(register, damage, settle)
	return b.MustBuild()
}

// fussy is a workflow whose code refuses every change of its item, with an error of no kind that the engine has.
func fussy() *builder.Workflow[any] {
	b := builder.New[any]("fussy")
	work := builder.Task(b, "work", builder.Work[any, any]{OnWorkItemStateChanged: func(context.Context, *activities.Change) error {
		return errors.New("the ledger says no")
	}})
	b.Path(b.Start(), work, b.End())
	return b.MustBuild()
}

// joining is a function that waits for events, and can be asked to by a token or by everybody.
func joining() *builder.Workflow[string] {
	b := builder.New[string]("joining", builder.On("visit"))
	work := builder.Task(b, "join", builder.Work[string, string]{Input: builder.CaseInput(b), Run: join})
	b.Path(b.Start(), work, b.End())
	b.Result(builder.Output(work))
	return b.MustBuild()
}

func join(ctx context.Context, name string) (string, error) {
	token, err := step.Token(ctx, "link", "verified")
	if err != nil {
		return "", err
	}
	_, err = step.Do(ctx, "welcome", func(context.Context) (string, error) {
		return "mail", os.WriteFile("token", []byte(token), 0o600)
	})
	if err != nil {
		return "", err
	}
	mail, err := step.Await[string](ctx, "verified", step.Timeout(48*time.Hour))
	if err != nil {
		return "", err
	}
	news, err := step.Await[string](ctx, "news", step.Topic())
	return name + ": " + mail + ", " + news, err
}

// define makes a database that knows the workflows, starts a function for each name, and does what is to be done now.
func define(path string, names ...string) {
	ctx, joining := context.Background(), joining()
	workflows := []engine.Workflow{article(), risky()}
	if filepath.Base(os.Args[0]) == "joind" {
		workflows = []engine.Workflow{joining}
	}
	err := real.Claim(ctx, sqlite.File(path))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	e, err := engine.Open(ctx, sqlite.File(path), workflows...)
	for _, name := range names {
		if err == nil {
			_, err = joining.Start(ctx, e, name)
		}
	}
	if err == nil {
		err = errors.Join(e.Drain(ctx), e.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// copied makes a database of another program, with the workflows of the recipes as they are.
func copied(path string) {
	workflows, err := real.Registry()
	if err == nil {
		var e *engine.Engine
		if e, err = engine.Open(context.Background(), sqlite.File(path), workflows...); err == nil {
			err = e.Close()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// owner owns the database of its first argument, and starts a case for every other one. It makes a file "ready" once
// nothing is left to do.
func owner() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := own(ctx, os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func own(ctx context.Context, path string, texts []string) error {
	w := article()
	var o store.Opener = sqlite.File(path)
	if strings.HasPrefix(path, "postgres:") {
		o = postgres.Open(path)
	}
	if err := real.Claim(ctx, o); err != nil {
		return err
	}
	e, err := engine.Open(ctx, o, w)
	if err != nil {
		return err
	}
	for _, text := range texts {
		if _, err := w.Start(ctx, e, prompt{Text: text}); err != nil {
			return err
		}
	}
	if err := e.Drain(ctx); err != nil {
		return err
	}
	if err := os.WriteFile("ready", nil, 0o644); err != nil {
		return err
	}
	<-ctx.Done()
	return errors.Join(os.Remove("ready"), e.Close())
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup:         setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"run": perform, "exits": exits, "field": field, "await": await, "lines": lines, "older": older, "edit": edit,
			"narrow": narrow, "shown": shown, "begin": begin,
		},
	})
}

// The same commands on databases of a PostgreSQL server: POSTGRES, OTHER and THIRD are the empty ones of a script.
func TestScriptsOnPostgres(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/postgres",
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			for _, name := range []string{"POSTGRES", "OTHER", "THIRD"} {
				env.Setenv(name, pgtest.Database(env.T().(testing.TB)))
			}
			return setup(env)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"run": perform, "exits": exits, "field": field, "await": await},
	})
}

// field puts a field of the first JSON object of the output into a variable: field ID id
func field(ts *testscript.TestScript, _ bool, args []string) {
	var object map[string]any
	ts.Check(json.NewDecoder(strings.NewReader(ts.ReadFile("stdout"))).Decode(&object))
	value, ok := object[args[1]]
	if !ok {
		ts.Fatalf("there is no field %s in %v", args[1], object)
	}
	ts.Setenv(args[0], fmt.Sprint(value))
}

// lines counts the lines of the output: lines 3
func lines(ts *testscript.TestScript, _ bool, args []string) {
	if n := strings.Count(ts.ReadFile("stdout"), "\n"); strconv.Itoa(n) != args[0] {
		ts.Fatalf("the output has %d lines, not %s", n, args[0])
	}
}

// narrow wants lines of at most 100 columns.
func narrow(ts *testscript.TestScript, _ bool, _ []string) {
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 {
			ts.Fatalf("the line has %d columns: %s", n, line)
		}
	}
}

// shown puts the first column of a row of the table, from 1, into a variable: shown ID 2
func shown(ts *testscript.TestScript, _ bool, args []string) {
	row, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Setenv(args[0], strings.Fields(strings.Split(ts.ReadFile("stdout"), "\n")[row])[0])
}

// begin puts the first bytes of a text into a variable: begin SHORT text 4
func begin(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	ts.Setenv(args[0], args[1][:n])
}

// await waits until a file is there, or, as ! await, is not.
func await(ts *testscript.TestScript, neg bool, args []string) {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(time.Minute)
	for {
		_, err := os.Stat(ts.MkAbs(args[0]))
		if (err == nil) != neg {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline:
			ts.Fatalf("%s: nothing happened", args[0])
		}
	}
}
