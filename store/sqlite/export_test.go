package sqlite

import "github.com/tasq-dev/tasq/store"

// LookNext has an owner look at its files before the next thing that it does, and not only once a second.
func LookNext(s store.Store) { s.(*Store).files.due.Store(true) }

// LookNoMore has an owner not look at its files once a second, however slow the machine is.
func LookNoMore(s store.Store) {
	files := s.(*Store).files
	files.timer.Stop()
	files.due.Store(false)
}
