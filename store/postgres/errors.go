package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tasq-dev/tasq/internal/sqlkit"
	"github.com/tasq-dev/tasq/store"
)

var errClosed = fmt.Errorf("the store is closed: %w", fs.ErrClosed)

// The SQLSTATE codes that this package handles; see the appendix "PostgreSQL Error Codes" of the PostgreSQL manual.
const (
	uniqueViolation      = "23505"
	notNullViolation     = "23502"
	divisionByZero       = "22012"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	lockNotAvailable     = "55P03"
	queryCanceled        = "57014"
	readOnlyTransaction  = "25006"
	insufficientRight    = "42501"
	undefinedTable       = "42P01"
	undefinedColumn      = "42703"
	undefinedSchema      = "3F000"
	failedTransaction    = "25P02"
	idleTimeout          = "25P03"
	diskFull             = "53100"
	limitOfServer        = "53400"
	tooManyConnections   = "53300"
	cannotConnectNow     = "57P03"
	unknownParameter     = "42704"
)

// errRight is the [store.ErrReadOnly] of a role that may not do what a statement does. Its text does not say that the
// database is read-only, since the role may lack the right to read, too.
var errRight error = rightError{}

type rightError struct{}

func (rightError) Error() string        { return "the role lacks a right" }
func (rightError) Is(target error) bool { return target == store.ErrReadOnly }

// code returns the SQLSTATE of an error of the server, "" for any other error.
// An error that the driver itself has made, such as that of a lost connection, has no code.
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// fault is an error with the name of the database, which prevents a second prefix.
// An error passes through several functions that could add the name: explain and at leave out those that have it.
type fault struct {
	name string
	err  error
}

func (f *fault) Error() string { return f.name + ": " + f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

func (db database) at(format string, args ...any) error {
	return &fault{db.name, fmt.Errorf(format, args...)}
}

// refusal marks an error of a commit that is caused by the data and not by the server.
//
// For example, one command of a batch has written a number that is out of range. With this error the commands run again
// one by one, and only that one fails; an error in the state of the server would fail every one of them.
func (db database) refusal(err error) error {
	switch c := code(err); {
	case c == "" || c == divisionByZero:
		return err
	// The class is the first two characters; a division by zero is what the store's own checks use to fail a commit,
	// and no fault of the data.
	case c[:2] == "22", c[:2] == "23", c[:2] == "54": // data, constraints, limits of the server
		return db.at("%w: %w", store.ErrRefused, err)
	}
	return err
}

// explain adds what an error of the server, or of the connection, means here, and what to do about it. It returns other
// errors unchanged.
func (db database) explain(err error) error {
	if known := (*fault)(nil); err == nil || errors.As(err, &known) {
		return err
	}
	switch c := code(err); c {
	case "":
	case serializationFailure, deadlockDetected:
		return db.at("%w: the server undid this transaction for another one, so nothing of it happened; try again: %w",
			store.ErrConflict, err)
	case lockNotAvailable:
		return db.at("%w: the statement waited too long for a lock of another transaction: %w", store.ErrUnavailable, err)
	case queryCanceled:
		return db.at("%w: the statement took longer than statement_timeout allows, or was canceled; that is 30s in a command, unless its SQL uses SET LOCAL, and in a query "+
			"that of the role or the database, unless the connection string has another one (statement_timeout=10min): %w", store.ErrUnavailable, err)
	case limitOfServer:
		return db.at("%w: a setting of the server does not allow what the statement needs; if it is temp_file_limit, raise that or work_mem for the role: %w",
			store.ErrUnavailable, err)
	case diskFull:
		return db.at("%w: the disk of the server is full, so nothing of this happened; free some space there and try again: %w", store.ErrUnavailable, err)
	case tooManyConnections:
		return db.at("%w: the server has no connection left for this role; end sessions that are not needed, or raise max_connections, "+
			"or the limit of the role or the database: %w", store.ErrUnavailable, inLine(err))
	case cannotConnectNow:
		return db.at("%w: the server is starting or stopping; try again when it runs: %w", store.ErrUnavailable, inLine(err))
	case unknownParameter:
		if !errors.As(err, new(*pgconn.ConnectError)) {
			return err // of the user's SQL
		}
		return db.at("%w: the connection string has a parameter that the server does not know; those of Tasq are %s, %s and %s: %w",
			store.ErrUnavailable, schemaKeyword, pollKeyword, windowKeyword, inLine(err))
	case readOnlyTransaction:
		return db.at("%w: if the server is a standby, name the primary, or both servers and target_session_attrs=read-write; otherwise "+
			"default_transaction_read_only is on, for the server, the database or the role: set it to off there: %w", store.ErrReadOnly, err)
	case insufficientRight:
		return db.at("%w: grant it to the role, or connect with another one: %w", errRight, err)
	case undefinedTable, undefinedColumn, undefinedSchema:
		return db.at("%w: its schema is not the one that Tasq made: %w", store.ErrCorrupt, err)
	// They are results of the store's own checks, or errors of the user's SQL; the caller distinguishes them.
	case divisionByZero, uniqueViolation, notNullViolation:
		return err
	default:
		switch c[:2] {
		case "3D":
			return db.at("%w: create the database, or name another one: %w", store.ErrUnavailable, inLine(err))
		case "28":
			return db.at("%w: the server does not let this role in; name another one, or its password: %w", store.ErrUnavailable, inLine(err))
		case "08", "53", "57", "58", "XX": // connection, resources, shutdown, disk
			return db.at("%w: %w", store.ErrUnavailable, inLine(err))
		}
		return err
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && !isNetwork(err):
		return err
	case errors.As(err, new(*pgconn.ConnectError)):
		return db.at("%w: the server cannot be reached; check that it runs, and its host and port: %w", store.ErrUnavailable, inLine(err))
	case isNetwork(err):
		return db.at("%w: the connection failed: %w", store.ErrUnavailable, inLine(err))
	case errors.Is(err, store.ErrCorrupt) && !errors.Is(err, sqlkit.ErrChanged):
		return db.at("restore a backup: %w", err)
	case errors.Is(err, store.ErrCorrupt), errors.Is(err, store.ErrNewer):
		return db.at("%w", err)
	}
	return err
}

// isNetwork reports whether an error comes from the connection and not from the server.
//
// The driver has several errors for a lost connection: they depend on whether it was lost while connecting, reading or
// writing, or was closed before.
func isNetwork(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.Timeout(err) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, pgconn.ErrConnClosed)
}

// lined is an error whose text is one line.
type lined struct {
	text string
	err  error
}

func (l *lined) Error() string { return l.text }
func (l *lined) Unwrap() error { return l.err }

// inLine returns the error of a connection in one line. The driver has a line for each address, and one for the attempt with and one for that
// without TLS, which often say the same.
func inLine(err error) error {
	var connect *pgconn.ConnectError
	head, rest, several := strings.Cut(err.Error(), "\n")
	if !errors.As(err, &connect) || !several {
		return err
	}
	var reasons []string
	for line := range strings.SplitSeq(rest, "\n") {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(reasons, line) {
			reasons = append(reasons, line)
		}
	}
	if answered := slices.DeleteFunc(slices.Clone(reasons), func(line string) bool { return strings.Contains(line, noTLS) }); len(answered) > 0 {
		reasons = answered
	}
	return &lined{head + " " + strings.Join(reasons, "; "), err}
}

// noTLS is what the driver says of a server without TLS, before it tries without.
const noTLS = "tls error: server refused TLS connection"
