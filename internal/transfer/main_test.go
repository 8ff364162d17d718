package transfer_test

import (
	"os"
	"testing"

	"github.com/tasq-dev/tasq/internal/testsize"
	"github.com/tasq-dev/tasq/internal/transfer"
)

// The tests wait for servers and for processes that they kill.
func TestMain(m *testing.M) {
	testsize.TempInMemory()
	testsize.Parallel(6)
	transfer.Limit(300, 20)
	os.Exit(m.Run())
}
