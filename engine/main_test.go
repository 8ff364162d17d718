package engine_test

import (
	"os"
	"testing"

	"github.com/tasq-dev/tasq/internal/testsize"
)

func TestMain(m *testing.M) {
	testsize.Parallel(12) // those of fleets wait for engines that are dead, and for heartbeats
	testsize.TempInMemory()
	testsize.Checks(10, 20)
	os.Exit(m.Run())
}
