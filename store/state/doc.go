// Package state is the model of running cases: what a case is, the changes that modify it, and their stored form.
//
// A [Case] has a marking, the states of its tasks, its work items, jobs and steps. A case and all its descendants
// form a [Tree], which changes as one unit:
//
//	order 17 (root)            marking, tasks {ship: started}, items, jobs
//	├── parcel 1  (of ship)    a case of its own, with a net of its own
//	└── parcel 2  (of ship)
//
// A command produces a list of [Change] values, and [Tree.Apply] is the only code that turns changes into state: the
// kernel uses it while it decides, a store to recover, and the integrity check to rebuild a case from its journal.
// [AppendChanges] and [DecodeChanges] are the stored form of changes, the same in every store.
package state
