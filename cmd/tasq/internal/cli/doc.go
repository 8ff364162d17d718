// Package cli implements the command tasq: it lists the contents of a database, prints the history of a case, explains
// why a task waits, acts on cases and work items, runs scenario files, and verifies and draws nets.
//
//	tasq items --state started --task review
//	tasq history 0197a3c4-5d6e-7f80-9a1b-2c3d4e5f6071
//	tasq item complete 0197a3c4-... --data '{"ok":true}'
//
// Commands that only read open the database read-only, also while another process owns it. Commands that change
// something are executed by the owner:
//
//	a process owns the database   the command is put into its inbox, and the answer printed
//	no process owns it            this process opens an engine and executes the command itself, with the definitions
//	                              that the database has as text; on a database of tasq demo also with the code of the
//	                              recipes, see [Registry]
//
// Results go to standard output, as a table for people or as JSON for programs, one object per line. Errors and
// messages go to standard error. The exit codes are stable, see the Exit constants. The package has the commands and
// their flags; packages check, demo, serve and model implement the larger ones.
package cli
