// Package cli is the command tasq: it lists what a database holds, prints the history of a case, explains why a task
// waits, acts on cases and work items, runs scenario files, verifies nets and draws them.
//
//	tasq items --state started --task review
//	tasq history 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071
//	tasq item complete 0197a3c4-... --data '{"ok":true}'
//
// Commands that only look open the file read-only, also while another process owns it, and change nothing. Commands
// that act are done by the process that owns the file, which gets them through an inbox. If no process owns it, this
// process does them itself, with the definitions that the database holds as text. On a database that tasq demo made, it
// has the code of the recipes too; see [Registry].
//
// Results go to standard output, as a table for people or as JSON for programs, one object a line. Errors and remarks
// go to standard error. The exit codes are stable, see the Exit constants.
package cli
