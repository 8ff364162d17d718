package postgres

import (
	"context"
	"fmt"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/internal/tables"
	"github.com/tasq-dev/tasq/store/state"
)

// Register implements [store.Store]. An existing definition is not changed: an equal fingerprint means that it is the
// same.
func (s *Store) Register(ctx context.Context, defs []*store.Definition) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return err
	}
	// The connection may be in a transaction that was begun ahead, of which this must not become a part.
	s.dropAhead()
	return s.db.explain(s.w.transaction(ctx, func() error { return s.register(defs) }))
}

func (s *Store) register(defs []*store.Definition) error {
	for _, d := range defs {
		doc, err := state.EncodeNet(d.Net)
		if err != nil {
			return err
		}
		// Compiled as a reader would: a document that does not compile would otherwise be found when a case of it is
		// loaded.
		if _, err := tables.Compile(string(doc)); err != nil {
			return fmt.Errorf("register workflow %s: %w", d.Name, err)
		}
		created := d.Created
		if created.IsZero() {
			created = s.now()
		}
		if _, err := s.w.run("INSERT INTO @.definitions (fingerprint, name, version, net, document, code, created) "+
			"VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (fingerprint) DO NOTHING", d.Fingerprint, d.Name, d.Version,
			string(doc), nullable(string(d.Document)), d.Code, state.Micros(created)); err != nil {
			return err
		}
	}
	return nil
}
