package source_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/admin/internal/source"
	"github.com/tasq-dev/tasq/retry"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// slow is a Backend each of whose reads takes until it is released.
type slow struct {
	source.Backend
	reading, most    atomic.Int64
	entered, release chan struct{}
}

func (s *slow) View(context.Context, func(store.Reader) error) error {
	n := s.reading.Add(1)
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	s.entered <- struct{}{}
	<-s.release
	s.reading.Add(-1)
	return errors.New("the end of the test")
}

// Streams leave readers to the other requests, however many streams there are.
func TestFewStreamsReadAtTheSameTime(t *testing.T) {
	const streams = 10
	s := &slow{entered: make(chan struct{}), release: make(chan struct{})}
	ended, b := make(chan error), source.Reading(s, nil, retry.SystemClock)
	for range streams {
		go func() {
			for _, err := range source.Follow(t.Context(), b, retry.SystemClock, workitem.CaseID{}, 0) {
				ended <- err
				return
			}
		}()
	}
	<-s.entered
	<-s.entered // two streams read at the same time
	for range streams - 2 {
		s.release <- struct{}{}
		require.ErrorContains(t, <-ended, "the end of the test")
		<-s.entered
	}
	for range 2 {
		s.release <- struct{}{}
		<-ended
	}
	require.EqualValues(t, 2, s.most.Load())
}
