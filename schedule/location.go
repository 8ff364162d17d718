package schedule

import (
	"fmt"
	"sync"
	"time"
)

// zones are the zones that were found, by name: to read one takes hundreds of microseconds. There are only as many as the tz database has.
var zones sync.Map // of *time.Location

// Location returns the time zone with a name of the tz database; "" is UTC. "Local" is refused, since processes on different machines would
// read it differently. A zone is loaded once; all calls return the same value.
func Location(name string) (*time.Location, error) {
	if known, ok := zones.Load(name); ok {
		return known.(*time.Location), nil
	}
	if name == "Local" {
		return time.UTC, fmt.Errorf("zone Local differs between machines: use a name such as Europe/Berlin")
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC, fmt.Errorf("zone %q is not in the tz database of this program: use a name such as "+
			"Europe/Berlin, or import time/tzdata", name)
	}
	known, _ := zones.LoadOrStore(name, zone)
	return known.(*time.Location), nil
}
