package printable

import "strings"

// Word is a text as one word of a command line of a POSIX shell, which takes nothing in it for a command, a variable or a pattern.
func Word(s string) string {
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// plain are the characters that mean themselves in every shell, wherever they stand.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@,+"
