// Package scenario reads and writes processes as text: nets in a small notation, and scenario files that run cases of
// them.
//
// The notation has one statement per line, free indentation, and comments from # to the end of the line:
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
// [ParseNotation] parses it, and [Format] writes it in its canonical form. Parsing reports only errors of the notation
// itself; whether a net is well-formed is checked by package net.
//
// A scenario file is a list of commands, each with the output that it must print:
//
//	# a comment line
//	item complete vote.1.2 to=again
//	----
//	ok
//
// The lines between a command and ---- are its input (only define takes any), and the first blank line ends its output.
// [Parse] parses a file, [Command.Action] parses a command, and [File.Rewrite] replaces outputs in the file and keeps
// every other byte.
//
// Both are parsed in time proportional to their size, whatever they contain, and every error has its line.
package scenario
