package demo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/demo"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/recipes/airetry"
	"github.com/tasq-dev/tasq/recipes/airetry/chat"
	"github.com/tasq-dev/tasq/recipes/airetry/fakechat"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// The environment has no model, whatever this process was started with. Most of the tests wait for a demo that shows something.
func TestMain(m *testing.M) {
	for _, name := range []string{chat.EnvBaseURL, chat.EnvKey, chat.EnvModel} {
		if err := os.Unsetenv(name); err != nil {
			panic(err)
		}
	}
	testsize.TempInMemory()
	testsize.Parallel(8)
	os.Exit(m.Run())
}

// options are for a fast, unattended run on a fresh file.
func options(t *testing.T) demo.Options {
	t.Helper()
	return demo.Options{
		Setting: demo.Setting{DB: filepath.Join(t.TempDir(), "demo.db"), Fast: true}, Faults: "ok",
	}
}

var unstable = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`), "CASE"},
	{regexp.MustCompile(`(?m)^ *\d+\.\d\ds  `), ""},
	{regexp.MustCompile(`(?m)  \S+s$`), "  TIME"}, // the last column
	{regexp.MustCompile(`\S*demo\.db`), "demo.db"},
}

// stable is an output without what differs from run to run.
func stable(output string) string {
	for _, u := range unstable {
		output = u.what.ReplaceAllString(output, u.with)
	}
	return output
}

func TestAnUnattendedRunReportsEveryEvent(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Faults = ""
	var out bytes.Buffer
	require.NoError(t, demo.Run(t.Context(), &out, o))
	require.Equal(t, `database: demo.db (new)
model:    a local server that will say: error, limit 1s, cut, and then answer

case CASE begins: Tell me about the rabbit.
generate.1.1 asks the model: attempt 1
generate.1.1 failed: internal_error
generate.1.2 is the next attempt, due in 50ms
generate.1.2 asks the model: attempt 2
generate.1.2 failed: rate_limit_exceeded
generate.1.3 is the next attempt, due in 1s, as the server asked
generate.1.3 asks the model: attempt 3
generate.1.3 failed: cut_short
generate.1.4 is the next attempt, due in 200ms
generate.1.4 asks the model: attempt 4
generate.1.4 has a draft: Rabbit actually took a fall as she could, for she tried t...
review.1.1 waits for a person, in queue "editors"
review.1.1 is started by demo
review.1.1 by demo: approved
the case has completed

work item     attempt  state      failure              waited  took
generate.1.1  1        failed     internal_error       0s      TIME
generate.1.2  2        failed     rate_limit_exceeded  50ms    TIME
generate.1.3  3        failed     cut_short            1s      TIME
generate.1.4  4        completed  -                    200ms   TIME
review.1.1    1        completed  -                    0s      TIME

Rabbit actually took a fall as she could, for she tried to put it flashed
across the house! Which was very good opportunity for some way, and then
dipped suddenly a jar from one of it, never once considering how many miles
I've fallen by her lessons in the pleasure of sitting by her.

All of it is in demo.db. To look around:
  tasq items -d demo.db --case CASE
  tasq history CASE -d demo.db
  tasq why CASE review -d demo.db
  tasq cases -d demo.db --counts
  sqlite3 demo.db "SELECT value FROM records WHERE collection = 'ai_jobs'"
`, stable(out.String()))
}

// until ends a run as soon as it has printed a word.
type until struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	word string
	stop func()
}

func (u *until) Write(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	n, err := u.buf.Write(p)
	if strings.Contains(u.buf.String(), u.word) {
		u.stop()
	}
	return n, err
}

// interrupted runs the demo until it has printed a word.
func interrupted(t *testing.T, o demo.Options, word string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &until{word: word, stop: cancel}
	require.ErrorIs(t, demo.Run(ctx, out, o), context.Canceled)
	require.Contains(t, out.buf.String(), "nothing is lost")
	return out.buf.String()
}

func TestAStoppedRunGoesOn(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Faults = "error, limit 5s"
	first := interrupted(t, o, "due in 5s")
	var out bytes.Buffer
	require.NoError(t, demo.Run(t.Context(), &out, o))
	id := regexp.MustCompile(`case \S+ begins`)
	require.Equal(t, id.FindString(first), id.FindString(out.String()), "the same case")
	text := stable(out.String())
	require.Contains(t, text, "so far an earlier run")
	require.Contains(t, text, "generate.1.3 asks the model: attempt 3")
	require.Contains(t, text, `
generate.1.1  1        failed     internal_error       0s      TIME
generate.1.2  2        failed     rate_limit_exceeded  50ms    TIME
generate.1.3  3        completed  -                    5s      TIME
review.1.1    1        completed  -                    0s      TIME
`, "no attempt is lost, and none is made twice")
}

func TestAnAttemptThatIsCutOffIsMadeAgain(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Faults = "hang"
	o.Fast = false // the server then hangs for seconds, and the run is stopped in the middle
	interrupted(t, o, "attempt 1")
	o.Faults = "ok"
	var out bytes.Buffer
	require.NoError(t, demo.Run(t.Context(), &out, o))
	require.Contains(t, stable(out.String()), "generate.1.1  1        completed")
	require.NotContains(t, out.String(), "generate.1.2", "a stop is no failed attempt")
}

func TestANewPromptIsANewCaseBesideTheOld(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Faults, o.Prompt = "limit 5s", "Tell me about the cat."
	interrupted(t, o, "due in 5s")
	o.Prompt = "Tell me about the queen."
	var out bytes.Buffer
	require.NoError(t, demo.Run(t.Context(), &out, o))
	require.Contains(t, out.String(), "begins: Tell me about the cat.")
	require.Contains(t, out.String(), "begins: Tell me about the queen.")
	require.Equal(t, 2, strings.Count(out.String(), "the case has completed"))
}

func TestAFinishedFileGetsANewCase(t *testing.T) {
	t.Parallel()
	o := options(t)
	require.NoError(t, demo.Run(t.Context(), io.Discard, o))
	var out bytes.Buffer
	require.NoError(t, demo.Run(t.Context(), &out, o))
	require.Contains(t, out.String(), "(was there)")
	require.Equal(t, 1, strings.Count(out.String(), "begins:"))
}

func TestAPersonReviewsOnATerminal(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Terminal, o.Plain, o.Ask, o.In = true, true, true, strings.NewReader("maybe\nn\nWith a cat, please.\nYES\n")
	var out bytes.Buffer
	require.NoError(t, demo.Run(t.Context(), &out, o))
	text := out.String()
	require.Equal(t, 2, strings.Count(text, "Approve this draft? [y/n]"))
	require.Contains(t, text, "Please answer y or n: ")
	require.Contains(t, text, "What should the model do better?")
	require.Contains(t, text, "rejected: With a cat, please.")
	require.Contains(t, text, "generate.2.1", "the note led to another draft")
	require.Contains(t, text, "\x1b[2K", "progress is drawn in place")
	require.NotContains(t, text, "\x1b[31m", "without colors, as asked")
}

func TestAnUnansweredReviewWaits(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Ask, o.In = true, strings.NewReader("perhaps\n")
	var out bytes.Buffer
	require.NoError(t, demo.Run(t.Context(), &out, o), "a review that waits is no failure")
	text := out.String()
	require.NotContains(t, text, "approved\n")
	require.Contains(t, text, "Please answer y or n: ")
	review := regexp.MustCompile(`tasq item start (\S+) -d \S+demo.db
  tasq item complete (\S+) -d \S+demo.db --data '{"approved":true}'`).FindStringSubmatch(text)
	require.NotNil(t, review, text)
	require.Equal(t, review[1], review[2])
	require.Contains(t, text, "To go on: tasq demo -d "+o.DB)

	answer(t, o, review[1], `{"approved":false,"note":"With a cat, please."}`)
	o.In = strings.NewReader("y\n")
	out.Reset()
	require.NoError(t, demo.Run(t.Context(), &out, o))
	require.Contains(t, out.String(), "rejected: With a cat, please.")
	require.Regexp(t, `generate\.2\.\d+  \d +completed`, out.String(), "on a slow machine the model has no answer in time, and is asked again")
	require.Contains(t, out.String(), "review.2.1 by you: approved")
}

// answer does what the demo says while it does not run: it starts and completes a review.
func answer(t *testing.T, o demo.Options, item, verdict string) {
	t.Helper()
	id, err := workitem.ParseID(item)
	require.NoError(t, err)
	all, err := demo.Registry()
	require.NoError(t, err)
	e, err := engine.Config{Workers: -1}.Open(t.Context(), sqlite.File(o.DB), all...)
	require.NoError(t, err)
	defer e.Close()
	for _, c := range []workflow.Command{
		{Kind: workflow.KindAct, Item: id, Action: workitem.Start},
		{Kind: workflow.KindAct, Item: id, Action: workitem.Complete, Payload: json.RawMessage(verdict)},
	} {
		_, err := e.Do(t.Context(), c)
		require.NoError(t, err)
	}
}

func TestAPipeIsAskedUnlessItSaysYes(t *testing.T) {
	t.Parallel()
	o := options(t)
	for _, c := range []struct{ yes, input, want string }{
		{"-yes=false", "", "There is no answer here"},
		{"-yes=false", "n\nWith a cat, please.\ny\n", "rejected: With a cat, please."},
		{"-yes", "n\n", "review.1.1 by demo: approved"},
		{"-fast", "n\n", "review.1.1 by demo: approved"}, // no one is at a terminal, so yes
	} {
		var out bytes.Buffer
		args := []string{"-d", filepath.Join(t.TempDir(), "demo.db"), "-fast", "-faults", o.Faults, c.yes}
		require.NoError(t, demo.Command(t.Context(), strings.NewReader(c.input), &out, io.Discard, args))
		require.Contains(t, out.String(), c.want)
	}
}

func TestACaseThatIsCanceledIsNamedSo(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{"": "", "withdrawn": ": withdrawn"} {
		o := options(t)
		silent, hush := io.Pipe() // a person who says nothing
		t.Cleanup(func() { require.NoError(t, hush.Close()) })
		o.Ask, o.In = true, silent
		out := &until{word: "waits for a person"}
		canceled := make(chan error, 1)
		out.stop = sync.OnceFunc(func() {
			id := regexp.MustCompile(`case (\S+) begins`).FindStringSubmatch(out.buf.String())[1]
			go func() { canceled <- cancelCase(t.Context(), o.DB, id, reason) }()
		})
		err := demo.Run(t.Context(), out, o)
		require.NoError(t, <-canceled)
		require.ErrorIs(t, err, demo.ErrCanceled)
		require.NotErrorIs(t, err, demo.ErrFailed)
		require.Regexp(t, "^the case was canceled: case \\S+"+want+"$", err.Error())
		require.Contains(t, out.buf.String(), "the case was canceled"+want+"\n")
	}
}

// cancelCase does what tasq case cancel does while the demo owns the file.
func cancelCase(ctx context.Context, path, id, reason string) error {
	of, err := workitem.ParseCaseID(id)
	if err != nil {
		return err
	}
	c := workflow.Cancel(of, nil)
	if reason != "" {
		c.Reason = &workitem.Failure{Code: reason}
	}
	return command(ctx, path, c)
}

// command has the owner of a file do something.
func command(ctx context.Context, path string, c workflow.Command) error {
	posted, err := json.Marshal(c)
	if err != nil {
		return err
	}
	answer, err := sqlite.Post(ctx, path, posted)
	if err != nil {
		return err
	}
	_, err = engine.RemoteAnswer(answer)
	return err
}

func TestACaseThatFailsIsAnError(t *testing.T) {
	t.Parallel()
	for faults, last := range map[string]string{
		"refuse":                           "generate.1.1  1        failed",
		"error, error, drop, cut, garbage": "generate.1.5  5        failed",
	} {
		o := options(t)
		o.Faults = faults
		var out bytes.Buffer
		require.ErrorIs(t, demo.Run(t.Context(), &out, o), demo.ErrFailed)
		require.Contains(t, out.String(), last)
		require.Contains(t, out.String(), "To look around")
	}
}

func TestAnEndpointOfOnesOwn(t *testing.T) {
	server, err := fakechat.Start(fakechat.Options{Key: "s3cret", Model: "mine"})
	require.NoError(t, err)
	t.Cleanup(server.Close)

	o := options(t)
	o.URL, o.Model, o.Key, o.Faults = server.URL(), "mine", "s3cret", ""
	var out bytes.Buffer
	require.NoError(t, demo.Run(t.Context(), &out, o))
	require.Contains(t, out.String(), `model "mine" at `+server.URL())
	require.NotContains(t, out.String(), "s3cret")

	o = options(t)
	o.Faults = ""
	t.Setenv(chat.EnvBaseURL, server.URL())
	t.Setenv(chat.EnvKey, "s3cret")
	t.Setenv(chat.EnvModel, "mine")
	require.NoError(t, demo.Run(t.Context(), io.Discard, o))
	require.Equal(t, 2, server.Count())
}

func TestWrongUsageSaysWhatIsWrong(t *testing.T) {
	for text, change := range map[string]func(*testing.T, *demo.Options){
		`no mode "erorr"`:         func(_ *testing.T, o *demo.Options) { o.Faults = "erorr" },
		"the name of a model":     func(_ *testing.T, o *demo.Options) { o.URL = "http://127.0.0.1:1" },
		"without a URL":           func(_ *testing.T, o *demo.Options) { o.Model = "mine" },
		"faults are for the":      func(_ *testing.T, o *demo.Options) { o.URL, o.Model = "http://127.0.0.1:1", "mine" },
		"no model: set OPENAI_MO": func(t *testing.T, _ *demo.Options) { t.Setenv(chat.EnvKey, "k") },
	} {
		t.Run(text, func(t *testing.T) {
			o := options(t)
			change(t, &o)
			err := demo.Run(t.Context(), io.Discard, o)
			require.ErrorIs(t, err, demo.ErrUsage)
			require.ErrorContains(t, err, text)
		})
	}
}

func TestAFileOfAnotherProgramIsNamed(t *testing.T) {
	t.Parallel()
	o := options(t)
	require.NoError(t, os.WriteFile(o.DB, bytes.Repeat([]byte("not a database. "), 100), 0o600))
	require.ErrorContains(t, demo.Run(t.Context(), io.Discard, o), o.DB)
}

func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	o := options(t)
	var out bytes.Buffer
	args := []string{"-d", o.DB, "--fast", "-faults", "error", "Tell", "me", "about", "the", "queen."}
	require.NoError(t, demo.Command(t.Context(), strings.NewReader(""), &out, io.Discard, args))
	require.Contains(t, out.String(), "begins: Tell me about the queen.")
	require.Contains(t, out.String(), "generate.1.2  2        completed")

	out.Reset()
	require.NoError(t, demo.Command(t.Context(), nil, &out, io.Discard, []string{"-h"}))
	require.Contains(t, out.String(), "Usage: tasq demo")
	require.Contains(t, out.String(), "-faults script")
	require.ErrorIs(t, demo.Command(t.Context(), nil, &out, io.Discard, []string{"-frobnicate"}), demo.ErrUsage)
	require.ErrorIs(t, demo.Command(t.Context(), nil, &out, io.Discard, []string{"incident", "-d", "postgres://bad string"}), demo.ErrUsage)
	require.ErrorIs(t, demo.Command(t.Context(), nil, &out, io.Discard, []string{"fleet", "-d", "postgres://bad string"}), demo.ErrUsage)
}

func TestTheRegistryHasEveryRecipe(t *testing.T) {
	t.Parallel()
	all, err := demo.Registry()
	require.NoError(t, err)
	e, err := engine.Config{Workers: -1}.Open(t.Context(), sqlite.Memory(), all...)
	require.NoError(t, err)
	defer e.Close()
	prints := make(map[string]string)
	require.NoError(t, e.View(t.Context(), func(r store.Reader) error {
		defs, err := r.Definitions(t.Context())
		for _, d := range defs {
			prints[d.Name] = d.Fingerprint
		}
		return err
	}))
	for _, name := range []string{
		"airetry", "approval", "bizretry", "compensate", "deferredchoice", "fanout", "loop", "nested", "onboarding", "order",
		"parcel", "timeout",
	} {
		require.Contains(t, prints, name)
	}
	own, err := airetry.New(&chat.Client{}, retry.Constant(2, 0))
	require.NoError(t, err)
	require.Equal(t, own.Fingerprint, prints["airetry"], "so it may act on the demo's cases")
}

// A prompt, and what a model answers, may hold characters that a terminal takes for commands.
func TestTextOfOthersIsPrintable(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Prompt = "a\x1b[2Jb\u202ec"
	var out strings.Builder
	require.NoError(t, demo.Run(t.Context(), &out, o))
	require.Contains(t, out.String(), "begins: a\uFFFD[2Jb\uFFFDc\n")
	require.NotContains(t, out.String(), "\x1b")
	require.Equal(t, "a\uFFFD[2Jb\uFFFDc", demo.Wrap(o.Prompt))
}
