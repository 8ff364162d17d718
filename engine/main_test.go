package engine_test

import (
	"flag"
	"os"
	"testing"
)

// waiting is how many tests run at a time that wait for the disk, for a timer or for another process, and not for a processor.
const waiting = "8"

// TestMain lets more tests run in parallel than there are processors, unless -parallel says how many.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", waiting); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
