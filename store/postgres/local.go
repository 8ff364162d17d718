package postgres

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A setting that SET LOCAL has changed lasts until the end of the transaction, which may have more commands: those of
// others in the same batch, and the statements of the store. So it is set back at the end of its command:
//
//	command 1   SET LOCAL app.tenant = '1'; SET LOCAL search_path = a
//	its end     app.tenant is empty, search_path is that of the session
//	command 2   sees neither
//
// If the command fails, ROLLBACK TO SAVEPOINT sets them back.

// local has settings by their names, with the values from before the command.
type local map[string]string

// setsLocal finds the names of settings in SQL. It also finds some in comments and strings, which costs a query.
var setsLocal = regexp.MustCompile(strings.ReplaceAll(`(?i)\bset~local~(session~authorization|time~zone|xml~option|"[^"]+"(?:\."[^"]+")?|[\w.$]+)|\bset_config\s*\(\s*'([^']+)'`,
	"~", `(?:\s|/\*[^*]*\*/|--[^\n]*\n)+`))

// synonyms are names in SET that current_setting does not know.
var synonyms = map[string]string{"session authorization": "session_authorization", "time zone": "timezone", "names": "client_encoding",
	"schema": "search_path", "xml option": "xmloption", "seed": ""}

// settingsIn returns the names of the settings that SQL may change.
func settingsIn(query string) (names []string) {
	if !hasFold(query, "local") && !hasFold(query, "set_config") {
		return nil
	}
	for _, found := range setsLocal.FindAllStringSubmatch(query, -1) {
		name := strings.ReplaceAll(strings.ToLower(found[1]+found[2]), `"`, "")
		if proper, is := synonyms[strings.Join(strings.Fields(name), " ")]; is {
			name = proper
		}
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// hasFold reports whether text contains a word in small letters, whatever its own case. Most SQL of users changes no
// setting, and the expression takes longer.
func hasFold(text, word string) bool {
	for i := 0; i+len(word) <= len(text); i++ {
		if text[i]|0x20 == word[0] && strings.EqualFold(text[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// noteLocal notes the values of the settings that a statement may change. The lock is held.
func (tx *serverTransaction) noteLocal(statement string) error {
	if tx.saved == 0 {
		return nil // it is not of a command
	}
	for _, name := range settingsIn(statement) {
		if _, known := tx.local[name]; known {
			continue
		}
		// NULL is a name that the server does not know. One with a dot is of the user's own, and empty before it is set.
		results, err := tx.w.verbatim(context.Background(), "SELECT current_setting("+literal(name)+", true)")
		if err != nil {
			return err
		}
		before := results[0].Rows[0][0]
		if before == nil && !strings.Contains(name, ".") {
			continue
		}
		if tx.local == nil {
			tx.local = make(local)
		}
		tx.local[name] = string(before)
	}
	return nil
}

// restoreLocal sets back what the user's SQL of a command has changed. The lock is held.
func (tx *serverTransaction) restoreLocal() error {
	if len(tx.local) == 0 {
		return nil
	}
	// The role first: it may lack the right to change the others.
	names := slices.SortedFunc(maps.Keys(tx.local), func(a, b string) int {
		return cmp.Or(slices.Index(roles, b)-slices.Index(roles, a), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] = "set_config(" + literal(name) + ", " + literal(tx.local[name]) + ", true)"
	}
	_, err := tx.w.verbatim(context.Background(), "SELECT "+strings.Join(names, ", "))
	return err
}

var roles = []string{"role", "session_authorization"}

// literal returns a text as a constant of SQL, in the form that is read in the same way whatever
// standard_conforming_strings is.
func literal(text string) string {
	return "E'" + strings.NewReplacer(`'`, `''`, `\`, `\\`).Replace(text) + "'"
}
