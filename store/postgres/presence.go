package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
)

// presence is the connection that holds the locks of an engine and receives notifications. The locks end with the
// connection and so with the process; an engine that lost the connection takes them again, unless another engine has
// the database alone. Behind a pooler there is no such connection: an engine is live as long as it sends heartbeats,
// and polls for commands of other processes.
//
// The locks of a session, which the server releases when it ends:
//
//	tasq engine @         shared by the engines of a schema, or exclusive for one engine
//	tasq process TOKEN @  of this engine; another engine that gets it knows that the session has ended
//
// The channel of a notification is the name of the schema. An empty payload means that a command was left; others are
// hints.
type presence struct {
	s        *Store
	pid      atomic.Uint32 // of the server's process; 0 behind a pooler
	left     atomic.Bool   // a command may have been left
	cancel   context.CancelFunc
	done     chan struct{}
	c        *conn        // used only by the goroutine once it runs; nil behind a pooler
	lostLock atomic.Value // an error: another engine has the lock
}

const (
	// tryLock is how long an engine that is opened waits for the lock of one that has just ended.
	tryLock = 300 * time.Millisecond

	// quietFor is the multiple of the patience of the connection after which next checks it, if no notification has
	// arrived.
	quietFor = 4

	// giveWay is how long an engine that shares the database waits for one that has it alone, as a command of tasq has for a moment.
	giveWay = 10 * time.Second

	// reconnect is the delay between two attempts to connect.
	reconnect = 250 * time.Millisecond
)

// openPresence takes the lock. The error wraps [store.ErrOwned] if another engine has it.
func (s *Store) openPresence(ctx context.Context) (p *presence, err error) {
	p = &presence{s: s, done: make(chan struct{})}
	work := p.listen
	if s.db.set.poll > 0 {
		work = p.poll
		if !s.shared {
			return nil, s.notAlone()
		}
	} else if p.c, err = p.connect(ctx); err != nil {
		return nil, err
	}
	// Only sessions that listen receive a notification, so earlier ones were missed.
	p.left.Store(true) // a command may have been left before
	ctx, p.cancel = context.WithCancel(context.Background())
	go work(ctx)
	return p, nil
}

// notAlone returns the error of an engine that wants the database alone, but is connected through a pooler. It wraps
// [store.ErrOwned] if an engine has the database open, so that the caller can leave the command to that one.
func (s *Store) notAlone() error {
	_, open, err := s.w.number("SELECT 1 FROM @.processes p WHERE p.state = 'live' AND NOT (" + absent + ") LIMIT 1")
	switch {
	case err != nil:
		return err
	case open:
		return s.db.owned(s.w)
	}
	return s.db.at("%w: no engine has it open, and through a pooler none can open it alone: connect to the server itself, or open an engine that shares it",
		store.ErrUnavailable)
}

// poll requests, at each interval, a check for commands of other programs.
// It only sets the flag that Changed returns, after which the engine reads the table.
func (p *presence) poll(ctx context.Context) {
	defer close(p.done)
	again := time.NewTicker(p.s.db.set.poll)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			p.left.Store(true)
		case <-ctx.Done():
			return
		}
	}
}

func (p *presence) connect(ctx context.Context) (*conn, error) {
	c, err := p.s.db.connectFor(ctx, p.s.db.set.attention)
	if err != nil {
		return nil, err
	}
	// LISTEN comes before the lock, and both before the check for commands, so that no command in between is missed.
	if err := c.exec(ctx, "LISTEN "+channel); err != nil {
		return nil, errors.Join(err, c.close())
	}
	if err := p.lock(ctx, c); err != nil {
		return nil, errors.Join(err, c.close())
	}
	p.pid.Store(c.pid)
	return c, nil
}

// channel is where [Post] notifies an engine.
const channel = "@"

// lock takes the lock of all engines, shared or exclusive, and the one of this engine. It does not wait in the server,
// since a waiting session holds back vacuum.
func (p *presence) lock(ctx context.Context, c *conn) error {
	query := "SELECT pg_try_advisory_lock(" + lockKey + ")"
	if p.s.shared {
		query = "SELECT pg_try_advisory_lock_shared(" + lockKey + ")"
	}
	if got, err := p.try(ctx, c, query, "engine"); err != nil || !got {
		return cmp.Or(err, p.withheld(c))
	}
	got, err := p.try(ctx, c, "SELECT pg_try_advisory_lock("+lockKey+")", fmt.Sprintf("process %d", p.s.token))
	if err == nil && !got {
		err = errors.New("another engine has its lock, which its last connection had, and which the server has not ended yet")
	}
	return err
}

// errLooks is the error of an engine whose lock another program has while it looks for engines.
var errLooks = errors.New("another program has the lock of the engines for a moment")

// withheld returns the error of an engine that does not get the lock of all engines. It wraps [store.ErrOwned] unless this engine is registered as
// live. What opens the database alone takes the lock first and declares the engines dead then, and gives the lock back if one of them is alive:
//
//	a command of tasq                                   this engine, whose session has ended
//	takes the lock
//	                                                    does not get it; its row is live: tries again
//	finds the row of this engine, which is alive
//	ends with ErrOwned, and so gives the lock back
//	                                                    gets it
func (p *presence) withheld(c *conn) error {
	_, live, err := c.number("SELECT 1 FROM @.processes WHERE id = $1 AND state = 'live'", p.s.number.Load())
	if err == nil && live {
		err = errLooks
	}
	return cmp.Or(err, p.s.db.owned(c))
}

// try requests a lock until it has it, or tryLock has passed.
//
// The server ends a session some milliseconds after its connection was closed, so a program that is restarted
// immediately finds the lock of its predecessor still taken.
func (p *presence) try(ctx context.Context, c *conn, query, name string) (got bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryLock)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		err := c.each(query, []any{name}, func(r *tables.Row) error {
			got = r.Flag()
			return r.Err
		})
		if err != nil || got {
			return got, err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return false, nil
		}
	}
}

// owned returns the error of an engine that cannot open the database because of another one.
func (db database) owned(c *conn) error {
	return db.at("%w: %s has it open: stop that one, or open the database for reading only", store.ErrOwned, owner(c))
}

// owner describes the engine that has the database open.
func owner(c *conn) string {
	who := "another engine"
	_ = c.each("SELECT name, joined::text FROM @.processes WHERE state = 'live' ORDER BY id DESC LIMIT 1", nil,
		func(r *tables.Row) error {
			who = fmt.Sprintf("another engine (%s, since %s)", r.Text(), r.Text())
			return nil
		})
	return who
}

// listen receives notifications, and takes the locks again after the connection was lost.
func (p *presence) listen(ctx context.Context) {
	defer close(p.done)
	for {
		n, err := p.next(ctx)
		switch {
		case err == nil && n == nil:
		// Notifications of commands have no payload, and those of other engines always have one.
		case err == nil && n.Payload != "":
			p.s.hints.take(n.Payload)
		case err == nil:
			p.left.Store(true)
		case ctx.Err() != nil:
			return
		default:
			p.s.log.Warn("the connection that keeps the database for this engine was lost; it is made anew", "database", p.s.db.name,
				"error", err)
			if !p.again(ctx) {
				return
			}
		}
	}
}

// next waits for a notification. If none arrives for a while, it checks the connection and returns none.
func (p *presence) next(ctx context.Context) (*pgconn.Notification, error) {
	quiet, cancel := context.WithTimeout(ctx, quietFor*p.c.patience)
	defer cancel()
	n, err := p.c.pg.WaitForNotification(quiet)
	if err == nil || quiet.Err() == nil || ctx.Err() != nil || p.c.gone() {
		return n, err
	}
	// A connection to a machine that has failed looks like an idle one. The statement gets a result, or the watchdog
	// closes the connection.
	return nil, p.c.exec(ctx, "SELECT 1")
}

// again reconnects, and reports whether this engine has the lock.
func (p *presence) again(ctx context.Context) bool {
	_ = p.c.cut()             // the connection is lost already
	var late <-chan time.Time // receives when another engine has had the database alone for long; nil while none has it
	for {
		c, err := p.connect(ctx)
		switch owned := errors.Is(err, store.ErrOwned); {
		case err == nil:
			p.c = c
			// Commands may have been left while there was no connection.
			p.left.Store(true)
			return true
		// Another engine opened the database alone meanwhile. It has freed all jobs, and this engine must not commit: it cannot join anew before
		// that one has ended.
		case owned && !p.s.shared:
			p.lostLock.Store(err)
			return false
		case !owned:
			late = nil
		case late == nil:
			late = time.After(giveWay)
		}
		select {
		// The server may be restarting; each attempt before it accepts connections fails at once.
		case <-time.After(reconnect):
		case <-late:
			p.lostLock.Store(err)
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// check returns an error that wraps [store.ErrLost] once another engine has the lock.
// The goroutine that lost the lock cannot stop the engine; the next call of the store does, through this error.
func (p *presence) check() error {
	if err, ok := p.lostLock.Load().(error); ok {
		return p.s.db.taken(err)
	}
	return nil
}

func (db database) taken(err error) error {
	return db.at("%w: another engine has opened the database since the connection of this one was lost: everything that was "+
		"acknowledged is there, and the other one goes on with it; stop this one: %w", store.ErrLost, err)
}

// end releases the lock.
func (p *presence) end(how func(*conn) error) error {
	// Wait for the goroutine, since it uses the connection that is closed next.
	p.cancel()
	<-p.done
	if p.c == nil {
		return nil
	}
	return how(p.c)
}
