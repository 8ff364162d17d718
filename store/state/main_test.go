package state_test

import (
	"os"
	"testing"

	"github.com/tasq-dev/tasq/internal/testsize"
)

func TestMain(m *testing.M) {
	testsize.Apply()
	os.Exit(m.Run())
}
