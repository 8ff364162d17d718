package demo

import (
	"time"

	"github.com/tasq-dev/tasq/store"
)

// SetOpener has a demo open its database by another store.
func (s *Setting) SetOpener(f func(path string) store.Opener) { s.opener = f }

// SetWait has a demo wait so long before another attempt, and in a pause.
func (s *Setting) SetWait(d time.Duration) { s.wait = d }

// Wrap is how a draft is shown.
func Wrap(text string) string { return wrap(text, 78) }
