package net

import (
	"os"
	"testing"

	"github.com/tasq-dev/tasq/internal/testsize"
)

func TestMain(m *testing.M) {
	testsize.Checks(30, 100)
	os.Exit(m.Run())
}
