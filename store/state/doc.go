// Package state is the model of running cases: what a case is, the changes that move it, and their stored form.
//
// A case is a [Case]: a marking, the states of its tasks, its work items, jobs and steps. A case and all its descendants
// form a [Tree], which changes as one:
//
//	order 17 (root)            marking, tasks {ship: started}, items, jobs
//	├── parcel 1  (of ship)    a case of its own, with a net of its own
//	└── parcel 2  (of ship)
//
// A command turns into a list of [Change] values, and [Tree.Apply] is the only code that turns changes into state: the
// kernel uses it as it decides, a store as it recovers, and the integrity check as it rebuilds a case from its journal
// alone. [AppendChanges] and [DecodeChanges] are the stored form of changes, the same in every store.
package state
