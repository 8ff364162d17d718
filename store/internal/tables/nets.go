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

	// Fingerprint returns the fingerprint of the definition of a case.
	Fingerprint(id workitem.CaseID) (string, error)
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

// EntryNets resolves the names in a journal entry. It keeps an error, since its functions cannot return one.
type EntryNets struct {
	from  Source
	nets  *Nets
	newer func(workitem.CaseID) *state.Case
	known map[workitem.CaseID]*net.Net
	err   error
}

// NewEntryNets returns a resolver for the entries of a database. Cases that are newer in memory than in the database
// are taken from newer, which returns nil for any other.
func NewEntryNets(from Source, nets *Nets, newer func(workitem.CaseID) *state.Case) *EntryNets {
	return &EntryNets{from: from, nets: nets, newer: newer, known: make(map[workitem.CaseID]*net.Net)}
}

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
	n := e.find(id)
	if n != nil {
		e.known[id] = n
	}
	return n
}

func (e *EntryNets) find(id workitem.CaseID) *net.Net {
	if c := e.newer(id); c != nil {
		return c.Net
	}
	fingerprint, err := e.from.Fingerprint(id)
	if err != nil || fingerprint == "" {
		if e.err == nil {
			e.err = err
		}
		return nil
	}
	return e.definition(fingerprint)
}

// Decode decodes the changes of a journal entry.
func (e *EntryNets) Decode(root workitem.CaseID, events string) ([]state.Change, error) {
	list, err := state.DecodeChanges([]byte(events), root, state.Nets{Definition: e.definition, Case: e.byCase})
	if err != nil && e.err != nil {
		err = fmt.Errorf("%w: %w", err, e.err)
	}
	return list, err
}

// NothingNewer is for databases whose tables are up to date.
func NothingNewer(workitem.CaseID) *state.Case { return nil }
