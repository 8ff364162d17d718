package engine_test

import (
	"os"
	"testing"

	"github.com/tasq-dev/tasq/internal/testsize"
)

func TestMain(m *testing.M) {
	testsize.Parallel(8)
	testsize.Checks(10, 30)
	os.Exit(m.Run())
}
