package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"

	"github.com/tasq-dev/tasq/domain"
)

// overDB is the database of a transaction that is over: a callback that was left behind, or that kept its Tx, must not
// reach the one that goes on.
var overDB = sync.OnceValue(func() domain.DB { return sql.OpenDB(overConnector{}) })

type overConnector struct{}

// Connect implements driver.Connector.
func (overConnector) Connect(context.Context) (driver.Conn, error) { return nil, errTxOver }

// Driver implements driver.Connector.
func (c overConnector) Driver() driver.Driver { return c }

// Open implements driver.Driver.
func (overConnector) Open(string) (driver.Conn, error) { return nil, errTxOver }
