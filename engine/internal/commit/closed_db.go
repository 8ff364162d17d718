package commit

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"

	"github.com/tasq-dev/tasq/domain"
)

// closedDB is the database of a transaction that has ended. A callback that was abandoned, or that kept its Tx, must
// not write to the next transaction on the same connection.
var closedDB = sync.OnceValue(func() domain.DB { return sql.OpenDB(closedConnector{}) })

type closedConnector struct{}

// Connect implements driver.Connector.
func (closedConnector) Connect(context.Context) (driver.Conn, error) { return nil, errTxEnded }

// Driver implements driver.Connector.
func (c closedConnector) Driver() driver.Driver { return c }

// Open implements driver.Driver.
func (closedConnector) Open(string) (driver.Conn, error) { return nil, errTxEnded }
