// Package store is the port between the engine and a database: the interfaces that a database adapter implements, and the
// types that queries return.
//
//	engine ──▶ store.Store ──▶ store/sqlite, store/postgres
//
// An adapter commits sets of entries ([Store.Update]), each acknowledged only when it is durable, and answers queries
// that always include all acknowledged entries ([Store.View]). It stores the cases of package [state] and the changes that made
// them. Every adapter implements the three interfaces [Store], [Tx] and [Reader]; what only some databases can do
// is an optional interface: [Backuper], [Watcher], [Auditor], [Killer]. Package storetest states the rules in words and
// as tests.
//
// Programs use this package for filters and iterators of queries, which an engine answers:
//
//	for c, err := range store.AllCases(ctx, e, store.CaseFilter{Workflow: "order"}) {
//		...
//	}
package store
