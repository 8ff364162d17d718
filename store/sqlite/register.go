package sqlite

import (
	"context"
	"fmt"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
)

// Register implements [store.Store]. An existing definition is not changed: an equal fingerprint means that it is the
// same.
func (s *Store) Register(_ context.Context, defs []*store.Definition) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writable(); err != nil {
		return err
	}
	if err := s.begin(); err != nil {
		return err
	}
	// In its own transaction, outside of the journal: a definition is not an event of a case, and must exist before the
	// first entry that names it.
	err := s.register(defs)
	if err == nil {
		err = s.w.run("COMMIT")
	}
	if err != nil {
		s.rollback()
	}
	return explain(s.path, err)
}

func (s *Store) register(defs []*store.Definition) error {
	for _, d := range defs {
		doc, err := state.EncodeNet(d.Net)
		if err != nil {
			return err
		}
		// Compile it as a reader would: a document that does not compile would only be detected when a case of it is
		// loaded, and could not be removed then.
		if _, err := tables.Compile(string(doc)); err != nil {
			return fmt.Errorf("register workflow %s: %w", d.Name, err)
		}
		// A definition that is copied from another database keeps its time.
		created := d.Created
		if created.IsZero() {
			created = s.now()
		}
		if err := s.w.run("INSERT INTO definitions (fingerprint, name, version, net, document, code, created) "+
			"VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (fingerprint) DO NOTHING", d.Fingerprint, d.Name, d.Version,
			string(doc),
			jsonOf(d.Document), boolOf(d.Code), state.Micros(created)); err != nil {
			return err
		}
	}
	return nil
}
