package postgres

import (
	"strings"

	"github.com/tasq-dev/tasq/internal/sqlkit"
)

// allowed refuses user statements that would end the transaction of the command, or change the session for later
// statements. The server itself refuses them in functions and DO blocks.
//
// It does not protect Tasq's own tables; that is a matter of privileges. They are in their own schema, which a
// statement reaches only by its qualified name or through the search path.
//
// PostgreSQL has no authorizer as SQLite has, so the first words of each statement decide. That catches mistakes, but
// is no protection against a malicious program, which has the connection string anyway.
func allowed(query string) error {
	for _, words := range beginnings(query) {
		first, second, _ := strings.Cut(words, " ")
		// The first group ends the transaction, or changes the state of the session on which the store relies: its
		// prepared statements, its settings, the channel that it listens to.
		switch first {
		case "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "DISCARD", "LISTEN", "UNLISTEN", "RESET",
			"DEALLOCATE":
			return sqlkit.Refusal(first)
		case "PREPARE":
			// A prepared transaction would outlive the command, and keep its locks until a person ends it.
			if second == "TRANSACTION" {
				return sqlkit.Refusal(words)
			}
		case "SET":
			// Both end with the transaction.
			if second != "LOCAL" && second != "CONSTRAINTS" {
				return sqlkit.Refusal(words)
			}
		}
	}
	return nil
}

// beginnings returns the first two words of each statement, in capitals.
// For example, "SET x = 1; -- COMMIT" and, in a second line, "SELECT 'ROLLBACK'" begin with SET X and with SELECT.
func beginnings(query string) []string {
	var all []string
	s := scanner{rest: query}
	for s.rest != "" {
		var words []string
		for {
			word, end := s.next()
			if word != "" && len(words) < 2 {
				words = append(words, strings.ToUpper(word))
			}
			if end {
				break
			}
		}
		if len(words) > 0 {
			all = append(all, strings.Join(words, " "))
		}
	}
	return all
}

// scanner finds words in SQL. Comments, strings and quoted names are not words.
type scanner struct{ rest string }

// next returns the next word of the statement, or "" for anything else, and reports whether the statement ends there.
func (s *scanner) next() (word string, end bool) {
	if s.rest == "" {
		return "", true
	}
	switch c := s.rest[0]; {
	case c == ';':
		s.rest = s.rest[1:]
		return "", true
	case strings.HasPrefix(s.rest, "--"):
		s.skipTo(2, "\n")
	case strings.HasPrefix(s.rest, "/*"):
		s.skipComment()
	case c == '\'':
		s.skipQuoted('\'', false)
	case c == '"':
		s.skipQuoted('"', false)
	case c == '$':
		s.skipDollar()
	case isLetter(c):
		return s.word(), false
	default:
		s.rest = s.rest[1:]
	}
	return "", false
}

// A byte of 0x80 or more is part of a letter in UTF-8, and the server takes all of these for letters of a name.
func isLetter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
func isWord(c byte) bool { return isLetter(c) || c == '$' || c >= '0' && c <= '9' }

// word scans a word. A string directly after the word e has escapes.
func (s *scanner) word() string {
	n := 0
	for n < len(s.rest) && isWord(s.rest[n]) {
		n++
	}
	word := s.rest[:n]
	s.rest = s.rest[n:]
	if strings.EqualFold(word, "e") && strings.HasPrefix(s.rest, "'") {
		s.skipQuoted('\'', true)
		return ""
	}
	return word
}

// skipTo skips to the end of the next occurrence of text from a position on, or to the end of the input if there is
// none.
func (s *scanner) skipTo(from int, text string) {
	if i := strings.Index(s.rest[from:], text); i >= 0 {
		s.rest = s.rest[from+i+len(text):]
	} else {
		s.rest = ""
	}
}

// skipComment skips a block comment, which may be nested.
func (s *scanner) skipComment() {
	depth := 0
	for i := 0; i+1 < len(s.rest); i++ {
		switch s.rest[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				s.rest = s.rest[i+1:]
				return
			}
		}
	}
	s.rest = ""
}

// skipQuoted skips a string or a quoted name. A quote within it is doubled.
func (s *scanner) skipQuoted(quote byte, escapes bool) {
	for i := 1; i < len(s.rest); i++ {
		switch {
		case escapes && s.rest[i] == '\\':
			i++
		case s.rest[i] == quote && i+1 < len(s.rest) && s.rest[i+1] == quote:
			i++
		case s.rest[i] == quote:
			s.rest = s.rest[i+1:]
			return
		}
	}
	s.rest = ""
}

// skipDollar skips a string such as $tag$text$tag$, or a parameter such as $1.
func (s *scanner) skipDollar() {
	n := 1
	for n < len(s.rest) && isWord(s.rest[n]) && s.rest[n] != '$' {
		n++
	}
	// A tag does not begin with a digit: $1$ is a parameter, followed by a dollar sign.
	if n < len(s.rest) && s.rest[n] == '$' && (n == 1 || isLetter(s.rest[1])) {
		s.skipTo(n+1, s.rest[:n+1])
	} else {
		s.rest = s.rest[n:]
	}
}
