package postgres

import (
	"strconv"
	"strings"

	"github.com/tasq-dev/tasq/store"
)

// leastVersion is the oldest version of the server with all that the statements use.
const leastVersion = 15

// checkServer returns an error if the server is too old, or if the database cannot store every text. parameter returns what the server reports
// when a connection begins; "" if it does not report it.
//
// In a database of another encoding, a text with a character that the encoding lacks could not be stored; one of SQL_ASCII does not know what
// a character is.
func (db database) checkServer(parameter func(name string) string) error {
	version := parameter("server_version")
	after := strings.TrimLeft(version, "0123456789") // "15.4 (Debian 15.4-1)", "18beta1"
	if major, err := strconv.Atoi(strings.TrimSuffix(version, after)); err == nil && major < leastVersion {
		return db.at("%w: the server is PostgreSQL %s, and Tasq needs version %d or newer", store.ErrUnavailable, version, leastVersion)
	}
	if encoding := parameter("server_encoding"); encoding != "" && encoding != "UTF8" {
		return db.at("%w: the encoding of the database is %s, which does not have every character; "+
			"make one with CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0", store.ErrUnavailable, encoding)
	}
	return nil
}
