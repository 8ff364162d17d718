package storetest_test

import (
	"os"
	"testing"

	"github.com/tasq-dev/tasq/internal/testsize"
)

// The tests wait for a server.
func TestMain(m *testing.M) {
	testsize.Parallel(6)
	os.Exit(m.Run())
}
