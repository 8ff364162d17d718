package demo_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/demo"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/store/sqlite"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// onboarding is a fast, unattended onboarding on a fresh file.
func onboarding(t *testing.T) demo.OnboardingOptions {
	return demo.OnboardingOptions{Setting: demo.Setting{DB: filepath.Join(t.TempDir(), "demo.db"), Fast: true}}
}

func TestAnOnboardingWaitsForItsEvent(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, demo.RunOnboarding(t.Context(), &out, onboarding(t)))
	require.Equal(t, `database: demo.db (new)
calls:    demo.db.calls, written by the mail server and the model

case CASE begins: ann@example.com signs up as u-1
verification-link: it holds a token that serves once
send-welcome: mailed
emailVerified: waits for the event, for at most 24h
event emailVerified is sent by demo
emailVerified: sent by demo
generate-content failed: overloaded: too many people sign up just now; attempt 2 is due in TIME
generate-content failed: overloaded: too many people sign up just now; attempt 3 is due in TIME
generate-content: Welcome! This is where to begin.
pause: waits for TIME
pause: over
complete-onboarding: the account is saved
the case has completed

step                 calls  attempts  result
verification-link    -      -         it holds a token that serves once
send-welcome         1      1         mailed
emailVerified        -      -         sent by demo
generate-content     3      3         Welcome! This is where to begin.
pause                -      -         over
complete-onboarding  -      1         the account is saved

ann@example.com got one mail, the model was called 3 times, and there is an
account.

All of it is in demo.db. To look around:
  tasq steps -d demo.db --case CASE
  tasq history CASE -d demo.db
  tasq events -d demo.db --case CASE
  sqlite3 demo.db "SELECT value FROM records WHERE collection = 'accounts'"
  cat demo.db.calls
`, steady(out.String()))
}

func TestAStoppedOnboardingGoesOn(t *testing.T) {
	t.Parallel()
	for _, word := range []string{
		"begins: ", "send-welcome: ", "waits for the event", "is sent by", "attempt 2 is due", "pause: waits",
	} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			o := onboarding(t)
			o.SetWait(300 * time.Millisecond) // time enough to be stopped
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			first := &until{word: word, stop: cancel}
			require.ErrorIs(t, demo.RunOnboarding(ctx, first, o), context.Canceled)
			require.Contains(t, first.buf.String(), "To go on: tasq demo onboarding -d "+o.DB)
			var out bytes.Buffer
			require.NoError(t, demo.RunOnboarding(t.Context(), &out, o))
			require.Contains(t, out.String(), "so far an earlier run")
			require.Contains(t, out.String(), "got one mail")
			require.Equal(t, 1, strings.Count(out.String(), "event emailVerified is sent"))
		})
	}
}

// A request of the link in the mail sends the event, once.
func TestTheLinkOfTheMailIsAWebhook(t *testing.T) {
	t.Parallel()
	o := onboarding(t)
	o.Interactive = true
	link := regexp.MustCompile(`curl -i -X POST (http://127\.0\.0\.1:\d+/verify/\S+)`)
	statuses := make(chan []int, 1)
	out := &until{word: "/verify/"}
	out.stop = sync.OnceFunc(func() {
		url := link.FindStringSubmatch(out.buf.String())[1]
		go func() { statuses <- []int{post(url + "x"), post(url), post(url)} }()
	})
	require.NoError(t, demo.RunOnboarding(t.Context(), out, o))
	got := <-statuses
	require.Equal(t, []int{http.StatusNotFound, http.StatusAccepted}, got[:2])
	require.NotEqual(t, http.StatusAccepted, got[2])
	require.Contains(t, out.buf.String(), "emailVerified: sent by webhook")
	require.Contains(t, out.buf.String(), "there is an\naccount.")
}

// post returns the status of the answer; 0 if there is none.
func post(url string) int {
	resp, err := http.Post(url, "application/json", nil)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// The command that is printed sends the event while the demo owns the file, and while no one does.
func TestTheCommandThatIsPrintedSendsTheEvent(t *testing.T) {
	t.Parallel()
	o := onboarding(t)
	o.Interactive, o.Terminal, o.Plain = true, true, true
	printed := regexp.MustCompile(`tasq event send (\S+) emailVerified -d \S+demo\.db`)
	sent := make(chan error, 1)
	out := &until{word: "curl"}
	out.stop = sync.OnceFunc(func() {
		id := printed.FindStringSubmatch(out.buf.String())[1]
		go func() { sent <- remote(t.Context(), o.DB, id) }()
	})
	require.NoError(t, demo.RunOnboarding(t.Context(), out, o))
	require.NoError(t, <-sent)
	require.Contains(t, out.buf.String(), "sent by ann")
	require.Contains(t, out.buf.String(), "there is an\naccount.")

	o.DB = filepath.Join(t.TempDir(), "demo.db")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out = &until{word: "curl", stop: cancel}
	require.ErrorIs(t, demo.RunOnboarding(ctx, out, o), context.Canceled)
	all, err := demo.Registry()
	require.NoError(t, err)
	e, err := engine.Config{Workers: -1}.Open(t.Context(), sqlite.File(o.DB), all...)
	require.NoError(t, err)
	id, err := workitem.ParseCaseID(printed.FindStringSubmatch(out.buf.String())[1])
	require.NoError(t, err)
	_, err = e.Do(t.Context(), workflow.Command{Kind: workflow.KindSend, Case: id, Event: "emailVerified"})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	var rest bytes.Buffer
	require.NoError(t, demo.RunOnboarding(t.Context(), &rest, o))
	require.Contains(t, rest.String(), "What an earlier run began goes on:")
	require.NotContains(t, rest.String(), "curl", "the event is there already")
}

// remote does what tasq event send does while the demo owns the file.
func remote(ctx context.Context, path, id string) error {
	of, err := workitem.ParseCaseID(id)
	if err != nil {
		return err
	}
	return command(ctx, path, workflow.Command{Kind: workflow.KindSend, Case: of, Event: "emailVerified", Actor: "ann"})
}

func TestAnAddressThatIsNotVerifiedFailsTheCase(t *testing.T) {
	t.Parallel()
	o := onboarding(t)
	o.Interactive, o.Timeout = true, 20*time.Millisecond
	var out bytes.Buffer
	err := demo.RunOnboarding(t.Context(), &out, o)
	require.ErrorIs(t, err, demo.ErrFailed)
	require.ErrorContains(t, err, "not-verified: ann@example.com was not verified within 20ms")
	require.Contains(t, steady(out.String()), "emailVerified failed: timeout: ")
	require.Contains(t, out.String(), "the model was called never, and there is no\naccount.")
}

func TestAWebhookThatCannotBeServed(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	o := onboarding(t)
	o.Interactive = true
	for _, address := range []string{taken.Addr().String(), "nowhere:x", "127.0.0.1"} {
		o.Listen = address
		err := demo.RunOnboarding(t.Context(), io.Discard, o)
		require.ErrorIs(t, err, demo.ErrUsage)
		require.ErrorContains(t, err, "-listen")
		require.NoFileExists(t, o.DB, "nothing was begun")
	}
}

func TestTheCommandLineOfAnOnboarding(t *testing.T) {
	t.Parallel()
	command := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := demo.Command(t.Context(), nil, &out, io.Discard, append([]string{"onboarding"}, args...))
		return out.String(), err
	}
	db := filepath.Join(t.TempDir(), "demo.db")
	out, err := command("-fast", "-d", db, "-timeout", "1h")
	require.NoError(t, err)
	require.Contains(t, out, "for at most 1h\n")
	out, err = command("--help")
	require.NoError(t, err)
	for _, word := range []string{"-interactive", "-listen", "-timeout", demo.DefaultOnboardingDB} {
		require.Contains(t, out, word)
	}
	for _, wrong := range [][]string{{"-timeout", "-1s"}, {"-timeout", "long"}, {"now"}, {"-failures", "2"}} {
		_, err := command(append(wrong, "-d", db)...)
		require.ErrorIs(t, err, demo.ErrUsage, wrong)
	}
}
