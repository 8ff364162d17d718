// Package testsize decides how much random and exhaustive tests try. A test has up to three forms: the usual one of go test; a long one
// with TASQ_LONG=1, which CI runs; and a nightly one with TASQ_NIGHTLY=1, which may take minutes. The usual form is as large as it takes
// to fail without what is tested, nearly always: what is rare is left to the others.
//
// With -short, tests that start servers or processes leave themselves out. CI runs the rest so under the race detector.
package testsize

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
)

// Nightly reports whether the nightly forms are asked for, with TASQ_NIGHTLY=1.
func Nightly() bool { return os.Getenv("TASQ_NIGHTLY") != "" }

// Long reports whether the long forms are asked for, with TASQ_LONG=1 or TASQ_NIGHTLY=1.
func Long() bool { return os.Getenv("TASQ_LONG") != "" || Nightly() }

// Pick returns the size of the form that is asked for.
func Pick(usual, long, nightly int) int {
	switch {
	case Nightly():
		return nightly
	case Long():
		return long
	}
	return usual
}

// InPart reports whether an input belongs to the part of an exhaustive test that is asked for: with TASQ_PART=2/3, the second of each three. Runs with
// 1/3, 2/3 and 3/3 try all of them. Without TASQ_PART, each input is in the part.
func InPart(input int) bool {
	said := os.Getenv("TASQ_PART")
	if said == "" {
		return true
	}
	var part, of int
	if n, err := fmt.Sscanf(said, "%d/%d", &part, &of); n != 2 || err != nil || part < 1 || part > of {
		panic(fmt.Sprintf("TASQ_PART is %q; give a part and how many there are, such as 2/3", said))
	}
	return input%of == part-1
}

// Checks sets how many histories each test of rapid tries in this package, unless -rapid.checks says it. The nightly form has
// rapid's own number, which is 100. Call it in TestMain, as the number belongs to the process. It includes [Apply].
func Checks(usual, long int) {
	flag.Parse() // TestMain runs before it
	set("rapid.checks", strconv.Itoa(Pick(usual, long, 100)))
	Apply()
}

// Parallel sets how many tests run at a time, unless -parallel says it: more than there are processors where tests wait for a disk,
// a timer or another process. It includes [Apply].
func Parallel(n int) {
	flag.Parse()
	set("test.parallel", strconv.Itoa(n))
	Apply()
}

// Apply applies the environment to this process. Call it in TestMain of a package whose tests have sizes, or take long.
//
// TASQ_SKIP is a pattern of tests to leave out, unless -skip gives one. In contrast to the flag, it does not concern the packages without
// Apply: go test finds their results in its cache, whatever the variables of this package say.
//
// The garbage collector runs less often, unless GOGC says how often. Tests allocate much and hold little: with Go's own setting, 100, the
// collector takes a tenth to a fifth of their processor time. Some nightly forms hold gigabytes, and keep that setting.
func Apply() {
	flag.Parse() // TestMain runs before it
	if skip := os.Getenv("TASQ_SKIP"); skip != "" {
		set("test.skip", skip)
	}
	if os.Getenv("GOGC") == "" && !Nightly() {
		debug.SetGCPercent(400)
	}
}

// TempInMemory has the temporary folders of this process's tests, and of its children, in [TempFolder]. Tests of what a disk does, or of
// how long it takes, do not want that. Call it in TestMain.
func TempInMemory() {
	if folder := TempFolder(); folder != os.TempDir() {
		if err := os.Setenv("TMPDIR", folder); err != nil {
			panic(err)
		}
	}
}

// set changes a flag that the command line does not mention.
func set(name, value string) {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if given {
		return
	}
	if err := flag.Set(name, value); err != nil {
		panic(err)
	}
}
