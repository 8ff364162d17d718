package demo

import "github.com/tasq-dev/tasq/store"

// SetOpener has a demo open its database by another store.
func (s *Setting) SetOpener(f func(path string) store.Opener) { s.opener = f }
