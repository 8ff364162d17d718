package postgres_test

import (
	"os"
	"testing"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// The tests wait for the server, for connections that hang, and for engines that are to be taken for dead.
func TestMain(m *testing.M) {
	testsize.Parallel(8)
	os.Exit(m.Run())
}
