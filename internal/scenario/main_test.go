package scenario

import (
	"os"
	"testing"

	"github.com/tasq-dev/tasq/internal/testsize"
)

func TestMain(m *testing.M) {
	testsize.Checks(20, 30)
	os.Exit(m.Run())
}
