package cli

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/store/sqlite"
)

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "print the version and the build",
		Args: exactly(),
		RunE: a.run(a.printVersion),
	}
}

func (a *app) printVersion(ctx context.Context, _ []string) error {
	v := versionOf(debug.ReadBuildInfo())
	var err error
	if v.SQLite, err = sqliteVersion(ctx); err != nil {
		return err
	}
	if a.output == "json" {
		return a.object(v)
	}
	revision := ""
	if v.Revision != "" {
		revision = " (" + v.Revision + " of " + v.Time
		if v.Modified {
			revision += ", modified"
		}
		revision += ")"
	}
	return a.say("tasq %s%s\n%s %s\nSQLite %s (modernc.org/sqlite %s)", v.Version, revision, v.Go, v.Platform, v.SQLite, v.Driver)
}

// versionRow is the JSON form of a version.
type versionRow struct {
	Version  string `json:"version"` // of the module; "(devel)" for a build from a working tree
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"` // of the revision
	Modified bool   `json:"modified"`       // the working tree had changes beyond the revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
	SQLite   string `json:"sqlite"`
	Driver   string `json:"driver"` // version of modernc.org/sqlite
}

const modulePath = "github.com/tasq-dev/tasq"

func versionOf(info *debug.BuildInfo, ok bool) versionRow {
	v := versionRow{
		Version: "unknown", Driver: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if !ok {
		return v
	}
	if info.Main.Path == modulePath && info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, m := range info.Deps {
		switch m.Path {
		case modulePath:
			v.Version = m.Version
		case "modernc.org/sqlite":
			v.Driver = m.Version
		}
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func sqliteVersion(ctx context.Context) (version string, err error) {
	s, err := sqlite.Memory().Open(ctx, store.Options{Now: now})
	if err != nil {
		return "", err
	}
	err = s.View(ctx, func(r store.Reader) error {
		return r.DB().QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version)
	})
	return version, errors.Join(err, s.Close())
}
