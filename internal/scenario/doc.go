// Package script reads and writes processes as text: nets in a small notation, and scenario files that drive cases
// through them.
//
// The notation has one statement a line, free indentation, and comments from # to the end of the line:
//
//	workflow review
//	  start begin                 # holds the first token
//	  end done                    # a token here completes the case
//	  condition waiting           # an explicit condition
//	  task draft                  # split=and join=and items=1 are the defaults
//	  task vote split=xor items=3 policy=quorum:2
//	  dummy again join=xor        # a routing task, without work items
//	  composite print of printing cases=2
//	  flow begin -> draft
//	  flow vote -> waiting, again # several targets, in order
//	  cancel vote: waiting        # what vote empties and cancels when it completes
//
// [ParseNotation] reads it into a [Workflow] for each one in the text, and [Format] writes it in its canonical form.
// Reading says only what the notation itself forbids; whether a net is well-formed is a question for package net.
//
// A scenario file is a list of commands, each with the output that it must print:
//
//	# a comment line
//	item complete vote.1.2 to=again
//	----
//	ok
//
// The lines between a command and ---- are its input (only define takes any), and the first blank line ends its
// output. [Parse] reads a file into its [Command] list, [Command.Action] says what a command asks for, and
// [File.Rewrite] puts other outputs into the file and leaves every other byte alone.
//
// Both forms are read in time proportional to their size, whatever they hold, and every error has its line.
package scenario
