package schedules_test

import (
	"os"
	"testing"

	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/internal/testsize"
)

func TestMain(m *testing.M) {
	usual := 20
	if os.Getenv(enginetest.EnvStore) != "" { // where each history has a database of a server
		usual = 10
	}
	testsize.Checks(10, usual)
	os.Exit(m.Run())
}
