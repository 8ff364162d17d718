package store

import (
	"iter"
	"maps"

	"github.com/tasq-dev/tasq/workitem"
)

// manyCases is from how many cases on a tree remembers which of them an item or job belongs to, instead of asking each.
const manyCases = 16

// holders lists the cases that may hold an item or job.
func (t *Tree) holders(id [16]byte) iter.Seq[*Case] {
	if len(t.cases) < manyCases {
		return maps.Values(t.cases)
	}
	if t.owners == nil {
		t.findOwners()
	}
	return func(yield func(*Case) bool) {
		if c := t.cases[t.owners[id]]; c != nil {
			yield(c)
		}
	}
}

func (t *Tree) findOwners() {
	t.owners = make(map[[16]byte]workitem.CaseID, 2*len(t.cases))
	for id, c := range t.cases {
		for it := range c.Items.All() {
			t.owners[it.ID] = id
		}
		for j := range c.Jobs.All() {
			t.owners[j.ID] = id
		}
	}
	t.ownersLimit = 2*len(t.owners) + 1024
}

// noteOwner adds an item or job that was opened. An entry of what is gone since is harmless, as the case is asked, too.
func (t *Tree) noteOwner(id [16]byte, c workitem.CaseID) {
	if t.owners == nil {
		return
	}
	if t.owners[id] = c; len(t.owners) > t.ownersLimit {
		t.owners = nil // too many may be gone: the next search begins anew
	}
}

// changed collects the newest value of each element that a command changes, in the order of the first change.
type changed[T listed] struct {
	list []T
	at   map[sortKey]int // positions in list; nil while there are few
}

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
