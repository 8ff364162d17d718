package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/tasq-dev/tasq/limit"
	"github.com/tasq-dev/tasq/retry"
)

// ErrMissed is the error of [RunLimits] if the server refused a call, or could have served the calls in less time.
var ErrMissed = errors.New("the limits were missed")

// leastUtilisation is the least share of the server's capacity that the demo must use.
const leastUtilisation = 0.95

// LimitsOptions configure the demo of limits. The zero value runs it with a window of one minute.
type LimitsOptions struct {
	Fast     bool // a window of seconds with a long margin: calls stay within the quota also on a busy machine, and do not use it up
	Terminal bool // draw progress in place, instead of a line for each interval
	Plain    bool // without colors

	longer   time.Duration // for tests: the margin
	listener net.Listener  // for tests. Default: a free port of 127.0.0.1
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
}

// limitsDemo is one run of the demo.
type limitsDemo struct {
	LimitsOptions
	quota
	calls    int
	margin   time.Duration // the window of the caller is longer by this, since a call arrives later than the caller counts it
	interval time.Duration // between lines, without a terminal
	view     view
	out      io.Writer
	server   *quotaServer
	begun    time.Time
}

// RunLimits runs the demo of limits: 200 calls to a model server on this machine that answers 429 beyond 50 calls a
// minute and 5 at once for each of three API keys. A pool of limits gives each call the first key with room. The result
// is what the server has counted. The error is [ErrMissed] if it refused a call or, without Fast, could have served the
// calls in less than 95 % of the time.
func RunLimits(ctx context.Context, out io.Writer, o LimitsOptions) error {
	d := &limitsDemo{LimitsOptions: o, out: out, calls: 200, margin: 500 * time.Millisecond, interval: 5 * time.Second,
		quota: quota{keys: []string{"key-1", "key-2", "key-3"}, most: 50, per: time.Minute, atOnce: 5, takes: time.Second}}
	if o.Fast {
		d.per, d.takes, d.margin, d.interval = 6*time.Second, 100*time.Millisecond, 3*time.Second, time.Second
	}
	d.margin = cmp.Or(o.longer, d.margin)
	d.view, d.server = newView(out, o.Terminal, o.Plain), newQuotaServer(d.quota)
	err := d.run(ctx)
	if ctx.Err() != nil {
		d.view.finish()
		fmt.Fprintln(out, "\nStopped. The limits of this demo are in memory, and nothing is left.")
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	return d.conclude()
}

// run makes the calls, and shows their progress.
func (d *limitsDemo) run(ctx context.Context) error {
	url, stop, err := d.serve()
	if err != nil {
		return err
	}
	defer stop()
	pool, err := d.pool()
	if err != nil {
		return err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: len(d.keys) * d.atOnce, DialContext: d.dial}
	defer transport.CloseIdleConnections()
	limits := d.limits()
	fmt.Fprintf(d.out, "model:  %s answers a call in %v; 429 beyond %d in %v and %d at once for a key\nlimits: %s, and %s, for each key\n\n",
		url, d.takes, d.most, d.per, d.atOnce, limits[0], limits[1])
	ctx, cancel := context.WithCancel(ctx)
	d.begun = retry.SystemClock.Now()
	var calls sync.WaitGroup
	failed := make(chan error, d.calls)
	for range d.calls {
		calls.Go(func() { failed <- d.call(ctx, &http.Client{Transport: transport}, url, pool) })
	}
	defer calls.Wait()
	defer cancel() // after an error, do not wait for the other calls
	return d.follow(ctx, failed)
}

// serve starts the server.
func (d *limitsDemo) serve() (url string, stop func(), err error) {
	l := d.listener
	if l == nil {
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return "", nil, fmt.Errorf("the model server cannot listen: %w", err)
		}
	}
	server := &http.Server{Handler: d.server}
	var served sync.WaitGroup
	served.Go(func() { server.Serve(l) }) //nolint:errcheck // Serve always returns an error
	return "http://" + l.Addr().String(), func() { server.Close(); served.Wait() }, nil
}

// limits returns the limits of each key.
func (d *limitsDemo) limits() []limit.Limit {
	return []limit.Limit{limit.Resource("running", int64(d.atOnce)), limit.Calls(int64(d.most), d.per+d.margin)}
}

// pool returns a pool with a set of limits for each key.
func (d *limitsDemo) pool() (*limit.Pool, error) {
	var members []limit.Member
	for _, key := range d.keys {
		set, err := limit.NewSet(d.limits()...)
		if err != nil {
			return nil, err
		}
		members = append(members, limit.Member{Name: key, Set: set})
	}
	return limit.NewPool(members...)
}

// call calls the model with the first key that has room.
func (d *limitsDemo) call(ctx context.Context, client *http.Client, url string, pool *limit.Pool) error {
	_, err := limit.Do(ctx, pool, func(ctx context.Context, lease limit.Lease) (int, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return 0, err
		}
		r.Header.Set("Authorization", "Bearer "+lease.From())
		answer, err := client.Do(r)
		if err != nil {
			return 0, err
		}
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body)
		return answer.StatusCode, err // the server counts refusals
	})
	return err
}

// follow shows the progress until all calls have ended, or one has failed.
func (d *limitsDemo) follow(ctx context.Context, failed <-chan error) error {
	every := d.interval
	if d.view.live {
		every = redraw
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ended := 0; ended < d.calls; {
		select {
		case err := <-failed:
			if err != nil {
				return err
			}
			ended++
		case now := <-tick.C:
			d.view.print(d, []string{d.head(now)}, now)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	now := retry.SystemClock.Now()
	d.view.print(d, []string{d.head(now)}, now)
	d.view.finish()
	return nil
}

// head implements caseTable.
func (d *limitsDemo) head(now time.Time) string {
	of, _ := d.server.counted()
	served, running, refused := 0, 0, 0
	for _, k := range of {
		served, running, refused = served+k.Served, running+k.Running, refused+k.Refused
	}
	return fmt.Sprintf("%5.1fs  %3d of %d calls served, %2d running, %d answered with 429",
		now.Sub(d.begun).Seconds(), served, d.calls, running, refused)
}

// rows implements caseTable: a line for each key.
func (d *limitsDemo) rows(_ time.Time, frame int) (rows []string) {
	of, _ := d.server.counted()
	for i, k := range of {
		sign := signWaiting
		if k.Running > 0 {
			sign = spinner(frame)
		}
		rows = append(rows, fmt.Sprintf("%s %s  %3d served  %d of %d at once", sign, d.keys[i], k.Served, k.Running, d.atOnce))
	}
	return rows
}

// conclude prints what the server has counted, and checks it.
func (d *limitsDemo) conclude() error {
	of, took := d.server.counted()
	t := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nkey\tserved\tmost in %v\tmost at once\t429\n", d.per)
	refused := 0
	for i, k := range of {
		fmt.Fprintf(t, "%s\t%d\t%d of %d\t%d of %d\t%d\n", d.keys[i], k.Served, k.MostCalls, d.most, k.MostRun, d.atOnce, k.Refused)
		refused += k.Refused
	}
	t.Flush()
	best := d.leastTime(d.calls)
	utilisation := best.Seconds() / took.Seconds()
	fmt.Fprintf(d.out, "\nThe server can serve %d calls in %.1f s at best. It took %.1f s: a utilisation of %.1f %%.\n",
		d.calls, best.Seconds(), took.Seconds(), 100*utilisation)
	if d.Fast {
		fmt.Fprintf(d.out, "With -fast windows are %v longer than those of the server, since a machine may be busy.\n", d.margin)
	}
	switch {
	case refused > 0:
		return fmt.Errorf("%w: the server answered %d of %d calls with 429", ErrMissed, refused, d.calls)
	case utilisation < leastUtilisation && !d.Fast:
		return fmt.Errorf("%w: the utilisation is %.1f %%, and is to be %.0f %%", ErrMissed, 100*utilisation, 100*leastUtilisation)
	}
	return nil
}
