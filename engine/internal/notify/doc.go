// Package notify lets callers wait until commands have changed something: until a case has ended, until something of a case is
// as it should be, or for the next entries of the journal. It also knows which cases wait for a topic.
//
//	a caller                                the writer, after a commit
//	  1. subscribe ──────────┐                 │
//	  2. look: done? return  ├── Notifier ◄────┘ Committed(tree, changes)
//	  3. wait for a signal ◄─┘
//	  4. go on at 2
//
// A caller subscribes before it looks, so a change between the two is not missed. A signal says that something changed, and not
// what, and a second one before the first is taken adds nothing: so a slow caller neither delays the writer nor needs memory.
// The end of a root case is the exception. It comes with the case, which may be removed from the store in the same commit.
//
// The package reads nothing by itself. What a caller looks at is a function that comes with each wait.
package notify
