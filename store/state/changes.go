package state

import "github.com/tasq-dev/tasq/workitem"

// saves has cases as they were before a command. Most commands change one or two cases, for which searching a list is
// faster and smaller than a map; a command that ends a thousand cases gets a map.
type saves struct {
	list []save
	ids  map[workitem.CaseID]struct{} // of the list; nil while it is short
}

type save struct {
	id  workitem.CaseID
	was *Case // nil for a new case
}

func (s *saves) has(id workitem.CaseID) bool {
	if s.ids != nil {
		_, ok := s.ids[id]
		return ok
	}
	for i := range s.list {
		if s.list[i].id == id {
			return true
		}
	}
	return false
}

func (s *saves) add(id workitem.CaseID, was *Case) {
	s.list = append(s.list, save{id, was})
	if s.ids == nil && len(s.list) > few {
		s.ids = make(map[workitem.CaseID]struct{}, 2*few)
		for i := range s.list {
			s.ids[s.list[i].id] = struct{}{}
		}
	}
	if s.ids != nil {
		s.ids[id] = struct{}{}
	}
}

// reset drops everything, but keeps some memory for the next command.
// A map that was needed for a large command is dropped: clearing it would cost each small command its size.
func (s *saves) reset() {
	if s.ids != nil {
		*s = saves{}
		return
	}
	clear(s.list)
	s.list = s.list[:0]
}

// changes collects the newest value of everything that a command changes, except cases.
type changes struct {
	items changed[*workitem.Item]
	jobs  changed[*Job]
	steps changed[*workitem.Step]
	mail  changed[*Message]
}

// merge adds later changes: those after a mark that is kept.
func (c *changes) merge(later changes) {
	c.items.merge(later.items)
	c.jobs.merge(later.jobs)
	c.steps.merge(later.steps)
	c.mail.merge(later.mail)
}

// changed collects the newest value of each element that a command changes, in the order of the first change. So a
// store writes one row for an item that was opened, started and completed in one command, and rows are in the order of
// ids.
type changed[T listed] struct {
	list []T
	at   map[sortKey]int // positions in list; nil while there are few
}

// While the list is short it is searched, which is faster than a map and allocates nothing.
func (c *changed[T]) put(v T) {
	k := keyOf(v)
	if c.at == nil {
		for i, d := range c.list {
			if keyOf(d) == k {
				c.list[i] = v
				return
			}
		}
		if c.list = append(c.list, v); len(c.list) < few {
			return
		}
		c.at = make(map[sortKey]int, 2*few)
		for i, d := range c.list {
			c.at[keyOf(d)] = i
		}
		return
	}
	if i, ok := c.at[k]; ok {
		c.list[i] = v
		return
	}
	c.at[k] = len(c.list)
	c.list = append(c.list, v)
}

func (c *changed[T]) merge(later changed[T]) {
	// Nothing was changed before the mark, so the later list can be used as it is.
	if len(c.list) == 0 {
		*c = later
		return
	}
	for _, v := range later.list {
		c.put(v)
	}
}
