// Package tables is how stores on SQL databases keep cases in tables: which columns there are, how a row becomes a case, an
// item, a job, a step or an event, and how the names in a journal entry get their meaning.
package tables
