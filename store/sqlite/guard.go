package sqlite

import (
	"fmt"
	"slices"
	"strings"
)

// guard refuses statements that would end or leave the transaction that they run in, or write to Tasq's own tables. It
// looks at the first words of each statement of the text, so a column may be called as it likes.
func guard(query string) error {
	l := lexer{text: query}
	for {
		word := l.word()
		if word == "" {
			return nil
		}
		if err := refusal(word, &l); err != nil {
			return err
		}
		l.skipStatement(word == "CREATE")
	}
}

func refuse(word string) error {
	return fmt.Errorf("%s is not allowed: the statement runs in the transaction of a command, which commits or "+
		"undoes it; return an error to undo", word)
}

// refusal looks at a statement that begins with the word; the lexer stands behind it.
func refusal(word string, l *lexer) error {
	switch word {
	case "BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE", "ATTACH", "DETACH", "VACUUM":
		return refuse(word)
	case "PRAGMA":
		rest := l.text[l.at:]
		if end := strings.IndexByte(rest, ';'); end >= 0 {
			rest = rest[:end]
		}
		name, _, called := strings.Cut(rest, "(")
		name = strings.ToLower(strings.TrimSpace(name))
		if i := strings.LastIndexByte(name, '.'); i >= 0 {
			name = name[i+1:]
		}
		if strings.Contains(rest, "=") || called && !reading[name] || acting[name] {
			return refuse("PRAGMA " + name)
		}
	case "INSERT", "REPLACE", "UPDATE", "DELETE", "DROP", "ALTER":
		if name := (&lexer{text: l.text, at: l.at}).target(word); ours[name] {
			return fmt.Errorf("%s of %s is not allowed: that is one of Tasq's own tables, which follow from the "+
				"journal; change cases and what they have by the methods of the engine", word, name)
		}
	}
	return nil
}

// ours lists Tasq's own tables and views; that of the records is written by collections, in this way.
var ours = map[string]bool{
	"journal": true, "idempotency_keys": true, "meta": true, "migrations": true, "definitions": true, "requests": true,
	"cases": true, "work_items": true, "jobs": true, "steps": true, "messages": true, "counts": true,
	"tasks": true, "history": true,
}

// target returns the name of the table that a statement changes which begins with the word, in small letters; "" if there
// is none, or it is a temporary one.
func (l *lexer) target(word string) string {
	name := l.name()
	for skip := map[string][]string{
		"INSERT": {"or", "rollback", "abort", "fail", "ignore", "replace", "into"}, "REPLACE": {"into"},
		"UPDATE": {"or", "rollback", "abort", "fail", "ignore", "replace"}, "DELETE": {"from"},
		"DROP": {"table", "view", "if", "exists"}, "ALTER": {"table"},
	}[word]; slices.Contains(skip, name); {
		name = l.name()
	}
	if schema := name; l.token() == "." {
		if name = l.name(); schema != "main" {
			return ""
		}
	}
	return name
}

// name returns the next token in small letters, and a quoted one without its quotes.
func (l *lexer) name() string {
	start := l.at
	t := l.token()
	if t != "quoted" {
		return strings.ToLower(t)
	}
	text := l.text[start:l.at]
	text = text[strings.IndexAny(text, "'\"`[")+1:]
	return strings.ToLower(strings.TrimRight(text, "'\"`]"))
}

// reading lists the pragmas whose argument says what to read.
var reading = map[string]bool{
	"table_info": true, "table_xinfo": true, "table_list": true, "index_info": true, "index_xinfo": true,
	"index_list": true, "foreign_key_list": true, "foreign_key_check": true, "integrity_check": true,
	"quick_check": true,
}

// acting lists the pragmas that do something without an argument.
var acting = map[string]bool{"wal_checkpoint": true, "incremental_vacuum": true, "optimize": true,
	"shrink_memory": true}

// lexer walks over the words of SQL, and over texts, quoted names and comments as a whole.
type lexer struct {
	text string
	at   int
}

// word returns the next word in capitals, or the next other character; "" at the end. Semicolons and spaces before it
// are skipped.
func (l *lexer) word() string {
	for {
		switch t := l.token(); t {
		case "":
			return ""
		case ";":
		default:
			return t
		}
	}
}

// skipStatement goes behind the semicolon that ends the statement. The body of a trigger has semicolons of its own.
func (l *lexer) skipStatement(create bool) {
	trigger, depth := false, 0
	for i := 0; ; i++ {
		switch t := l.token(); {
		case t == "":
			return
		case create && i < 2 && t == "TRIGGER":
			trigger = true
		case trigger && (t == "BEGIN" || t == "CASE"):
			depth++
		case trigger && t == "END":
			depth--
		case t == ";" && depth <= 0:
			return
		}
	}
}

// token returns the next word, semicolon, or any other character; "" at the end.
func (l *lexer) token() string {
	for l.at < len(l.text) {
		c := l.text[l.at]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == 0xef || c == 0xbb || c == 0xbf:
			l.at++
		case strings.HasPrefix(l.text[l.at:], "--"):
			l.skipTo("\n")
		case strings.HasPrefix(l.text[l.at:], "/*"):
			l.at += 2
			l.skipTo("*/")
		case c == '\'' || c == '"' || c == '`':
			l.at++
			l.skipTo(string(c))
			return "quoted"
		case c == '[':
			l.skipTo("]")
			return "quoted"
		case letter(c):
			start := l.at
			for l.at < len(l.text) && (letter(l.text[l.at]) || '0' <= l.text[l.at] && l.text[l.at] <= '9') {
				l.at++
			}
			return strings.ToUpper(l.text[start:l.at])
		default:
			l.at++
			return string(c)
		}
	}
	return ""
}

func letter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c >= 0x80
}

// skipTo goes behind the next occurrence of the text, or to the end. A doubled quote is two texts in a row.
func (l *lexer) skipTo(end string) {
	i := strings.Index(l.text[l.at:], end)
	if i < 0 {
		l.at = len(l.text)
		return
	}
	l.at += i + len(end)
}
