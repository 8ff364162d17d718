// Package storetest is the conformance suite of the store port: the rules for adapters, in words and as tests.
// An adapter's own test is one call:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Opener { return sqlite.File(filepath.Join(t.TempDir(), "t.db")) })
//	}
//
// The histories consist of events, without the engine: see [World]. What the store returns is compared with a model that
// is computed from the same events.
package storetest
