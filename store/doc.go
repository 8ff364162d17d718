// Package store is the port between the engine and a database: the state of cases, the changes that change it, and what
// a database has to offer.
//
// A case is a [Case]: a marking, the states of its tasks, its live work items, jobs and child cases. A case and all its
// descendants form a [Tree], which changes as one. A command turns into a list of [Change] values, and [Tree.Apply] is
// the only code that turns changes into state: the kernel uses it as it decides, an adapter when it recovers, and the
// integrity check when it rebuilds a case from its journal alone.
//
// An adapter commits sets of changes ([Store.Update]), each acknowledged only when it is durable, and answers queries
// that never see the past ([Store.View]). Package storetest holds the rules in words and as tests.
package store
