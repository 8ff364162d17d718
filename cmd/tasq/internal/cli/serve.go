package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/user"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/cmd/tasq/internal/serve"
	"github.com/tasq-dev/tasq/engine"
	"github.com/tasq-dev/tasq/engine/bulk"
	"github.com/tasq-dev/tasq/engine/why"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/store"
)

func (a *app) serve() *cobra.Command {
	var o serve.Options
	var hash string
	var presets []string
	cmd := &cobra.Command{
		Use: "serve [DATABASE]", Short: "show a database in the browser",
		Long: paragraph("Show a database in the browser: cases with their nets, waits and history, work items, jobs, incidents. The " +
			"printed address has a token, which sets a cookie; without it, access is denied. With --users, people sign in with the " +
			"names and passwords of a file instead. The file has a line NAME:HASH:RIGHTS for each user: HASH is the bcrypt hash of " +
			"the password, and RIGHTS are look, act (all commands), or kinds of commands separated by commas, such as retry,skip; " +
			"the default is look. The file is read again when it changes. The database is opened for reading, also beside the " +
			"program that owns it. With --act, commands are left for that program, which must run to execute them. Without DATABASE, " +
			"--db names the database. The pages have a JSON API under /api/v1/."),
		Example: "  tasq serve article.db\n  tasq serve article.db --act --by ann\n  tasq serve postgres://... --listen 0.0.0.0:7070 --trust-header X-Forwarded-User\n" +
			"  tasq serve --hash ann < password >> users\n  tasq serve article.db --act --users users --listen 0.0.0.0:7070 --tls-cert cert.pem --tls-key key.pem",
		Args: cobra.MaximumNArgs(1),
	}
	f := cmd.Flags()
	f.BoolVar(&o.Act, "act", false, "allow commands; without it, the pages are read-only")
	f.StringVar(&o.Listen, "listen", serve.DefaultListen, "listen `address`; one that other machines can reach needs --users or --trust-header")
	f.StringVar(&o.TrustHeader, "trust-header", "", "`name` of the header in which an authenticating proxy passes the user; use it only "+
		"behind such a proxy")
	f.StringVar(&o.Users, "users", "", "`file` of users and password hashes; passwords need an encrypted connection, so on non-local "+
		"addresses use --tls-cert, or a TLS proxy")
	f.StringVar(&o.Certificate, "tls-cert", "", "PEM `file` of the certificate with its chain, to serve TLS; read again when it changes")
	f.StringVar(&o.Key, "tls-key", "", "PEM `file` of the key of --tls-cert")
	f.StringArrayVar(&presets, "preset", nil, "named filter of a list that all users see, as in `'stuck=/cases?state=started&older=3d'`; repeatable")
	f.StringVar(&hash, "hash", "", "print a line of the users file for the user `name`, with the password from standard input, and exit")
	f.StringVar(&o.Name, "by", userName(), "`name` under which commands are recorded, without --users and --trust-header")
	cmd.RunE = a.run(func(ctx context.Context, args []string) error {
		if f.Changed("hash") {
			return a.hash(hash)
		}
		if len(args) == 1 {
			a.db = args[0]
		}
		return a.servePages(ctx, o, presets)
	})
	return cmd
}

// pagesConfig configures the pages. They offer bulk actions if a program has opened the database with the workflow of
// bulk actions, since that program executes them.
func pagesConfig(ctx context.Context, v store.Viewer, o serve.Options) (c admin.Config, err error) {
	if !o.Act {
		return c, nil
	}
	err = v.View(ctx, func(r store.Reader) error {
		known, err := namesOf(ctx, r)
		if err == nil && slices.Contains(known.workflows(), bulk.Name) {
			c.Bulk = bulk.New(engine.Code)
		}
		return err
	})
	return c, err
}

// parsePresets reads named filters of lists, as in stuck=/cases?state=started.
func parsePresets(texts []string) (all []admin.Preset, err error) {
	for _, text := range texts {
		name, address, _ := strings.Cut(text, "=")
		path, query, _ := strings.Cut(address, "?")
		if path == "" {
			return nil, usagef("--preset %s has no path of a list; a preset has the form NAME=PATH?FILTERS, as in 'stuck=/cases?state=started&older=3d'",
				printable.Line(text))
		}
		p := admin.Preset{Name: name, Path: path, Query: query}
		if err := p.Check(); err != nil {
			return nil, usagef("--preset %s: %w", printable.Line(text), err)
		}
		all = append(all, p)
	}
	return all, nil
}

// hash prints a line of a file of users.
func (a *app) hash(name string) error {
	password, err := bufio.NewReader(a.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	line, err := serve.UserLine(name, strings.TrimRight(password, "\r\n"))
	if err != nil {
		return usage(err)
	}
	return a.say("%s", line)
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

func (a *app) servePages(ctx context.Context, o serve.Options, presets []string) error {
	db, err := a.database()
	if err != nil {
		return err
	}
	named, err := parsePresets(presets)
	if err != nil {
		return err
	}
	return a.withStore(ctx, func(s store.Store) error {
		var post admin.Post
		if o.Act {
			post = func(ctx context.Context, command json.RawMessage) (store.Answer, error) {
				return db.Inbox().Post(ctx, command)
			}
		}
		c, err := pagesConfig(ctx, s, o)
		if err != nil {
			return err
		}
		c.Presets = named
		ask := func(ctx context.Context) (here why.Here, err error) {
			err = s.View(ctx, func(r store.Reader) error {
				here, err = a.here(ctx, r)
				return err
			})
			return here, err
		}
		server, err := serve.Open(admin.Reading(s, post, admin.Ask(ask), admin.Owned(db.Owned)), c, o)
		if errors.Is(err, serve.ErrAddress) || errors.Is(err, serve.ErrUsers) || errors.Is(err, serve.ErrCertificate) {
			return usage(err)
		}
		if err != nil {
			return err
		}
		a.remark("%s, %s; stop with Ctrl-C", db.Name(), map[bool]string{true: "for looking and acting", false: "for looking only"}[o.Act])
		return server.Run(ctx, a.Out)
	})
}
