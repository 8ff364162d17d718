// Package notify lets callers wait for commits: for the end of a case, for a condition on a case, or for the next
// entries of the journal. It also has an index of the cases that wait for a topic.
//
//	a caller                                the writer, after a commit
//	  1. subscribe ──────────┐                 │
//	  2. look: done? return  ├── Notifier ◄────┘ Committed(tree, changes)
//	  3. wait for a signal ◄─┘
//	  4. go to 2
//
// A caller subscribes before it looks, so it cannot miss a change between the two. A signal only says that something
// changed, and signals that are not yet received are merged into one. So a slow caller neither delays the writer nor
// uses memory. The end of a root case is an exception: it is sent with the case, since the same commit may remove the
// case from the store.
//
// The package does not read the store. Each wait passes a function that does (Look).
package notify
