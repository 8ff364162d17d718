package fleet

import "github.com/tasq-dev/tasq/workitem"

// A member follows the root cases for which callers wait here, or whose jobs run here: it reads each again after another engine has changed it.

// watched returns the root cases that this engine has to follow, with their last known positions, and drops the others.
func (m *Member) watched() map[workitem.CaseID]int64 {
	roots := append(m.o.Work.Roots(), m.o.Awaited()...)
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := make(map[workitem.CaseID]int64, len(roots))
	known := make(map[workitem.CaseID]int64, len(roots))
	for _, root := range roots {
		seen[root], known[root] = m.seen[root], m.seen[root]
	}
	m.seen = seen
	return known
}

// refresh starts a Refresh of a root case, unless one is in progress.
func (m *Member) refresh(root workitem.CaseID) {
	m.mu.Lock()
	asked := m.refreshing[root]
	m.refreshing[root] = true
	m.mu.Unlock()
	if !asked {
		m.o.Refresh(root)
	}
}

// compare refreshes the root cases whose positions in the store differ from the known ones. It skips those that this
// engine has changed itself during the Tick, since its commit has loaded what others did before, and those that it no
// longer follows. Most are skipped: they belong to short jobs.
func (m *Member) compare(known map[workitem.CaseID]int64, changed []workitem.CaseID) {
	if len(changed) == 0 {
		return
	}
	now := m.watched()
	for _, root := range changed {
		if last, watched := now[root]; watched && last == known[root] {
			m.refresh(root)
		}
	}
}

// Refreshed records that a Refresh has loaded a root case up to a position; 0 if it has failed, so that the next Tick
// finds it changed again.
func (m *Member) Refreshed(root workitem.CaseID, last int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.refreshing, root)
	if _, watched := m.seen[root]; watched {
		m.seen[root] = last
	}
}
