package sqlite

import "github.com/tasq-dev/tasq/store"

// LookNext has an owner look at its files before the next thing that it does, and not only once a second.
func LookNext(s store.Store) { s.(*Store).files.due.Store(true) }
