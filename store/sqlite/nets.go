package sqlite

import (
	"fmt"
	"sync"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// netCache compiles each definition once, however many cases run on it.
type netCache struct {
	mu   sync.Mutex
	nets map[string]*net.Net
}

func newNetCache() *netCache { return &netCache{nets: make(map[string]*net.Net)} }

// get finds the net of a definition, in memory or in the database.
func (n *netCache) get(c *conn, fingerprint string) (*net.Net, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if known := n.nets[fingerprint]; known != nil {
		return known, nil
	}
	var doc string
	err := c.each("SELECT net FROM definitions WHERE fingerprint = ?", args(fingerprint), func(r *row) error {
		doc = r.text()
		return r.err
	})
	if err != nil {
		return nil, err
	}
	if doc == "" {
		return nil, fmt.Errorf("the definition with fingerprint %q: %w", fingerprint, store.ErrNotFound)
	}
	compiled, err := compile(doc)
	if err != nil {
		return nil, err
	}
	n.nets[fingerprint] = compiled
	return compiled, nil
}

func compile(doc string) (*net.Net, error) {
	def, err := state.DecodeNet([]byte(doc))
	if err != nil {
		return nil, err
	}
	compiled, err := net.Compile(def)
	if err != nil {
		return nil, fmt.Errorf("%w: a stored definition is not well-formed: %w", store.ErrCorrupt, err)
	}
	return compiled, nil
}

// entryNets gives a journal entry's names their meaning. An error is kept, since the functions cannot return one.
type entryNets struct {
	c     *conn
	nets  *netCache
	newer func(workitem.CaseID) *state.Case
	known map[workitem.CaseID]*net.Net
	err   error
}

func newEntryNets(c *conn, nets *netCache, newer func(workitem.CaseID) *state.Case) *entryNets {
	return &entryNets{c: c, nets: nets, newer: newer, known: make(map[workitem.CaseID]*net.Net)}
}

func (e *entryNets) definition(fingerprint string) *net.Net {
	n, err := e.nets.get(e.c, fingerprint)
	if err != nil && e.err == nil {
		e.err = err
	}
	return n
}

func (e *entryNets) byCase(id workitem.CaseID) *net.Net {
	if n := e.known[id]; n != nil {
		return n
	}
	n := e.find(id)
	if n != nil {
		e.known[id] = n
	}
	return n
}

func (e *entryNets) find(id workitem.CaseID) *net.Net {
	if c := e.newer(id); c != nil {
		return c.Net
	}
	fingerprint := ""
	err := e.c.each("SELECT fingerprint FROM cases WHERE id = ?", args(textOf(id)), func(r *row) error {
		fingerprint = r.text()
		return r.err
	})
	if err != nil || fingerprint == "" {
		if e.err == nil {
			e.err = err
		}
		return nil
	}
	return e.definition(fingerprint)
}

func (e *entryNets) decode(root workitem.CaseID, events string) ([]state.Change, error) {
	list, err := state.DecodeChanges([]byte(events), root, state.Nets{Definition: e.definition, Case: e.byCase})
	if err != nil && e.err != nil {
		err = fmt.Errorf("%w: %w", err, e.err)
	}
	return list, err
}

// nothingNewer is for connections whose tables show everything.
func nothingNewer(workitem.CaseID) *state.Case { return nil }
