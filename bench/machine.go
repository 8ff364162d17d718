package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cores is how many processors the machine has, as a factor.
var cores = float64(runtime.NumCPU())

// machineBusy is the time that all processors together have worked since the machine was started; 0 where the system
// does not report it.
func machineBusy() time.Duration {
	const tick = 10 * time.Millisecond // of /proc/stat
	f, err := os.Open("/proc/stat")
	if err != nil {
		return 0
	}
	defer f.Close()
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil {
		return 0
	}
	var busy int64
	for i, field := range strings.Fields(line)[1:] { // user nice system idle iowait irq softirq steal guest guest_nice
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil || i > 7 {
			break
		}
		if i != 3 && i != 4 {
			busy += n
		}
	}
	return time.Duration(busy) * tick
}

func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(data))[:3], " ")
}

func processor() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, " \t:"))
		}
	}
	return runtime.GOARCH
}

// diskSync is the median time of writing 4 KiB into a file that has its size, and syncing it.
func diskSync(dir string) (time.Duration, error) {
	f, err := os.Create(filepath.Join(dir, "sync-probe"))
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	const pages = 500
	page := make([]byte, 4096)
	if _, err := f.Write(make([]byte, pages*len(page))); err != nil {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	var took []time.Duration
	for i := range pages {
		at := time.Now()
		if _, err := f.WriteAt(page, int64(i*len(page))); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(at))
	}
	slices.Sort(took)
	return percentile(took, 50), nil
}

// version is that of a module this program was built with.
func version(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == module {
			return m.Version
		}
	}
	return "unknown"
}

func machineLine() string {
	return fmt.Sprintf("%s, %d cores, %s/%s, %s", processor(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH,
		runtime.Version())
}
