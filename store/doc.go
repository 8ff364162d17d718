// Package store is the port between the engine and a database: what a database has to offer.
//
// An adapter commits sets of entries ([Store.Update]), each acknowledged only when it is durable, and answers queries
// that never see the past ([Store.View]). What it keeps are the cases of package [state] and the changes that made them.
// The port has three interfaces that every adapter implements ([Store], [Tx], [Reader]); what only some databases can do
// is an interface of its own: [Backuper], [Watcher], [Auditor], [Killer]. Package storetest holds the rules in words and
// as tests.
package store
