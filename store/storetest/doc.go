// Package storetest is the one conformance suite of the store port: what an adapter has to do, in words and as tests.
// An adapter's own test is one call:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Opener { return sqlite.File(filepath.Join(t.TempDir(), "t.db")) })
//	}
//
// The histories are made of events, without the engine: see [World]. What the store shows is compared with a model that
// folds the same events.
package storetest
