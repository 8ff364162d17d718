// Package tables maps cases to tables for stores on SQL databases: the columns, how a row becomes a case, an item, a
// job, a step or an event, and how the names in a journal entry are resolved.
package tables
