//go:build unix

package admin_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/internal/integrity"
	"github.com/tasq-dev/tasq/internal/pgtest"
	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/step"
	"github.com/tasq-dev/tasq/store/postgres"
	"github.com/tasq-dev/tasq/workflow"
	"github.com/tasq-dev/tasq/workitem"
)

// envWorker tells a process of the test its database.
const envWorker = "TASQ_PAGES_DSN"

// transfer is work of several commits behind an event, between which its process may die.
func transfer() *builder.FuncRef[int, int] {
	return builder.MustFunc("transfer", func(ctx context.Context, n int) (int, error) {
		if _, err := step.Await[any](ctx, "go"); err != nil {
			return 0, err
		}
		for _, name := range []string{"debit", "clear", "credit"} {
			if err := step.Sleep(ctx, name, 100*time.Millisecond); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
}

// TestWorkerOfPages is a process of [TestPagesOfAFleetThatLosesProcesses], until its standard input ends.
func TestWorkerOfPages(t *testing.T) {
	dsn := os.Getenv(envWorker)
	if dsn == "" {
		t.Skip("it is the child of TestPagesOfAFleetThatLosesProcesses")
	}
	e, err := engine.Config{Workers: 8, Logger: slog.New(slog.DiscardHandler)}.Open(context.Background(), postgres.Open(dsn), transfer())
	require.NoError(t, err)
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	require.NoError(t, e.Close())
}

// worker starts a process that works. It is ended with the test, if kill was not called.
func worker(t *testing.T, dsn string) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestWorkerOfPages$", "-test.count=1")
	cmd.Env, cmd.Stderr = append(os.Environ(), envWorker+"="+dsn), os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	end := sync.OnceFunc(func() {
		_ = in.Close()
		_ = cmd.Wait() // it may have been killed
	})
	t.Cleanup(end)
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "ready") {
	}
	require.NoError(t, lines.Err())
	return func() {
		require.NoError(t, cmd.Process.Kill())
		end()
	}
}

// untilChanged is the system's clock without the long waits, after which pages are created again although nothing has changed: what a viewer sees was
// reported as a change.
type untilChanged struct{ retry.Clock }

func (c untilChanged) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	if d < 10*time.Second {
		return c.Clock.AfterFunc(d, f)
	}
	return func() bool { return true }
}

// A process that works is killed while pages of its cases are open in another one. Each viewer sees each case end, and nothing is left of those that
// have gone.
func TestPagesOfAFleetThatLosesProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes, whose work others take over after some seconds; run without -short")
	}
	kills, viewers := testsize.Pick(1, 2, 20), testsize.Pick(100, 100, 1000)
	const cases = 5
	dsn, f := pgtest.Database(t), transfer()
	e, err := engine.Config{Workers: -1, Logger: slog.New(slog.DiscardHandler)}.Open(t.Context(), postgres.Open(dsn), f)
	require.NoError(t, err)
	defer func() {
		require.NoError(t, integrity.Check(context.WithoutCancel(t.Context()), e))
		require.NoError(t, e.Close())
	}()
	pages := httptest.NewServer(admin.Handler(e, admin.Config{Access: admin.ReadOnly, Clock: untilChanged{retry.SystemClock}, Logger: slog.New(slog.DiscardHandler)}))
	defer pages.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: viewers}}
	kill, before := worker(t, dsn), runtime.NumGoroutine()
	for range kills {
		ids := make([]workitem.CaseID, cases)
		for i := range ids {
			run, err := f.Run(t.Context(), e, i)
			require.NoError(t, err)
			ids[i] = run.ID
		}
		ctx, leave := context.WithTimeout(t.Context(), 2*time.Minute)
		var open, seen sync.WaitGroup
		missed := make(chan string, viewers)
		for i := range viewers {
			open.Add(1)
			seen.Go(func() {
				if err := untilSeen(ctx, client, pages.URL, ids[i%cases], sync.OnceFunc(open.Done)); err != nil {
					missed <- fmt.Sprintf("viewer %d of case %s: %v", i, ids[i%cases], err)
				}
			})
		}
		open.Wait()
		for _, id := range ids {
			_, err := e.Do(t.Context(), workflow.Send(id, "go", nil))
			require.NoError(t, err)
		}
		kill()
		kill = worker(t, dsn)
		for i, id := range ids {
			n, err := f.Of(id).Result(ctx, e)
			require.NoError(t, err)
			require.Equal(t, i, n)
		}
		seen.Wait()
		leave()
		close(missed)
		for text := range missed {
			t.Error(text)
		}
		client.CloseIdleConnections()
		require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+2 }, time.Minute, 10*time.Millisecond,
			"goroutines of viewers that are gone are left")
	}
}

// untilSeen reads the events of the page of a case until it says that the case has ended. ready is called with the first one.
func untilSeen(ctx context.Context, client *http.Client, base string, id workitem.CaseID, ready func()) error {
	defer ready()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/live?page="+url.QueryEscape("/cases/"+id.String()), nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	lines := bufio.NewReader(answer.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return fmt.Errorf("%s, without the end: %w", answer.Status, err)
		}
		if !strings.HasPrefix(line, "data:") {
			continue
		}
		ready()
		if strings.Contains(line, "the case has ended") {
			return nil
		}
	}
}
