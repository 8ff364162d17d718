// Package testsize decides how much random and exhaustive tests try. A test has up to three forms: the usual one of go test, a
// shorter one with -short, which CI runs under the race detector, and a long one with TASQ_NIGHTLY=1, which may take minutes.
package testsize

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// Nightly reports whether the long forms are asked for, with TASQ_NIGHTLY=1.
func Nightly() bool { return os.Getenv("TASQ_NIGHTLY") != "" }

// Pick returns one of three sizes: that of -short, the usual one, or the nightly one, which wins over -short.
func Pick(short, usual, nightly int) int {
	switch {
	case Nightly():
		return nightly
	case testing.Short():
		return short
	}
	return usual
}

// Checks sets how many histories each test of rapid tries in this package, unless -rapid.checks says it. The nightly form has
// rapid's own number, which is 100. Call it in TestMain, as the number belongs to the process.
func Checks(short, usual int) {
	flag.Parse() // TestMain runs before it
	set("rapid.checks", Pick(short, usual, 100))
}

// Parallel sets how many tests run at a time, unless -parallel says it: more than there are processors where tests wait for a disk,
// a timer or another process.
func Parallel(n int) {
	flag.Parse()
	set("test.parallel", n)
}

// set changes a flag that the command line does not mention.
func set(name string, value int) {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if given {
		return
	}
	if err := flag.Set(name, strconv.Itoa(value)); err != nil {
		panic(err)
	}
}
