package printable

import "strings"

// Word is a text as one word of a command line of a POSIX shell, which takes nothing in it for a command, a variable or a pattern.
func Word(s string) string {
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Arguments are texts as the last words of a command line, each as [Word] has it. If one begins with a hyphen, "--" goes before them,
// so that the command does not take it for a flag.
func Arguments(all ...string) string {
	words := make([]string, len(all))
	flags := ""
	for i, s := range all {
		words[i] = Word(s)
		if strings.HasPrefix(s, "-") {
			flags = "-- "
		}
	}
	return flags + strings.Join(words, " ")
}

// plain are the characters that mean themselves in every shell, wherever they stand.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@,+"
