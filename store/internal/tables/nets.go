package tables

import (
	"fmt"
	"sync"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/state"
	"github.com/tasq-dev/tasq/workitem"
)

// Nets caches compiled definitions, which many cases share. The zero value is ready for use.
type Nets struct {
	mu   sync.Mutex
	nets map[string]*net.Net
}

// Source reads the data of nets from a database. A missing text is "".
type Source interface {
	// Document returns the net of a definition.
	Document(fingerprint string) (string, error)

	// Fingerprints calls f with each of the given cases that exists, and the fingerprint of its definition.
	Fingerprints(ids []workitem.CaseID, f func(id workitem.CaseID, fingerprint string)) error
}

// Get returns the net of a definition, from memory or from the database.
func (n *Nets) Get(from Source, fingerprint string) (*net.Net, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if known := n.nets[fingerprint]; known != nil {
		return known, nil
	}
	doc, err := from.Document(fingerprint)
	if err != nil {
		return nil, err
	}
	if doc == "" {
		return nil, fmt.Errorf("the definition with fingerprint %q: %w", fingerprint, store.ErrNotFound)
	}
	compiled, err := Compile(doc)
	if err != nil {
		return nil, err
	}
	if n.nets == nil {
		n.nets = make(map[string]*net.Net)
	}
	n.nets[fingerprint] = compiled
	return compiled, nil
}

// Compile parses the stored form of a net.
func Compile(doc string) (*net.Net, error) {
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

// EntryNets resolves the names in journal entries. It keeps an error, since its functions cannot return one.
type EntryNets struct {
	from  Source
	nets  *Nets
	newer func(workitem.CaseID) *state.Case
	known map[workitem.CaseID]*net.Net
	ahead []workitem.CaseID // root cases of entries to be decoded that were not looked up yet
	err   error
}

// NewEntryNets returns a resolver for the entries of a database. Cases that are newer in memory than in the database
// are taken from newer, which returns nil for any other.
func NewEntryNets(from Source, nets *Nets, newer func(workitem.CaseID) *state.Case) *EntryNets {
	return &EntryNets{from: from, nets: nets, newer: newer, known: make(map[workitem.CaseID]*net.Net)}
}

// Expect names the root cases of the entries to be decoded, with repetitions. The first that is needed is looked up
// together with all others: a page of entries takes one statement, not one for each case.
func (e *EntryNets) Expect(roots []workitem.CaseID) { e.ahead = roots }

func (e *EntryNets) definition(fingerprint string) *net.Net {
	n, err := e.nets.Get(e.from, fingerprint)
	if err != nil && e.err == nil {
		e.err = err
	}
	return n
}

func (e *EntryNets) byCase(id workitem.CaseID) *net.Net {
	if n := e.known[id]; n != nil {
		return n
	}
	if c := e.newer(id); c != nil {
		e.known[id] = c.Net
		return c.Net
	}
	if err := e.lookUp(id); err != nil && e.err == nil {
		e.err = err
	}
	return e.known[id]
}

// lookUp reads the definitions of a case, and of the root cases that are expected.
func (e *EntryNets) lookUp(id workitem.CaseID) error {
	wanted := map[workitem.CaseID]bool{id: true}
	for _, root := range e.ahead {
		wanted[root] = wanted[root] || e.known[root] == nil
	}
	e.ahead = nil
	ids := make([]workitem.CaseID, 0, len(wanted))
	for id, is := range wanted {
		if is {
			ids = append(ids, id)
		}
	}
	fingerprints := make(map[workitem.CaseID]string, len(ids))
	err := e.from.Fingerprints(ids, func(id workitem.CaseID, fingerprint string) { fingerprints[id] = fingerprint })
	if err != nil {
		return err
	}
	// The rows are read before the nets, as a connection runs one query at a time.
	for id, fingerprint := range fingerprints {
		if n := e.definition(fingerprint); n != nil {
			e.known[id] = n
		}
	}
	return nil
}

// Decode decodes the changes of a journal entry.
func (e *EntryNets) Decode(root workitem.CaseID, events string) ([]state.Change, error) {
	list, err := state.DecodeChanges([]byte(events), root, state.Nets{Definition: e.definition, Case: e.byCase})
	if err != nil && e.err != nil {
		return list, fmt.Errorf("%w: %w", err, e.err)
	}
	for _, change := range list { // later entries of the case need no lookup
		if opened, is := change.(*state.CaseOpened); is {
			e.known[opened.Case.ID] = opened.Case.Net
		}
	}
	return list, err
}

// NothingNewer is for databases whose tables are up to date.
func NothingNewer(workitem.CaseID) *state.Case { return nil }
