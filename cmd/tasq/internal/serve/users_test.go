package serve_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/builder"
	"github.com/tasq-dev/tasq/cmd/tasq/internal/serve"
	"github.com/tasq-dev/tasq/engine/enginetest"
	"github.com/tasq-dev/tasq/store"
	"github.com/tasq-dev/tasq/workitem"
)

// line is a line of a file of users, with the least cost of a hash.
func line(t *testing.T, name, password, rights string) string {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	require.NoError(t, err)
	return name + ":" + string(hash) + rights + "\n"
}

// desk is a server of pages with a file of users, and an engine with a case that waits for a person.
type desk struct {
	*enginetest.Engine
	t         *testing.T
	file, url string
	id        workitem.CaseID
}

func newDesk(t *testing.T, act bool, lines ...string) *desk {
	t.Helper()
	b := builder.New[any]("claim")
	b.Path(b.Start(), builder.Task(b, "assess", builder.Work[any, any]{}), b.End())
	claim := b.MustBuild()
	d := &desk{Engine: enginetest.New(t, claim), t: t, file: filepath.Join(t.TempDir(), "users")}
	d.write(lines...)
	id, err := claim.Start(t.Context(), d.Engine, nil)
	require.NoError(t, err)
	d.id = id
	s, err := serve.Open(d.Engine.Engine, admin.Config{}, serve.Options{Listen: "127.0.0.1:0", Act: act, Users: d.file, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, io.Discard) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	d.url = s.URL()
	return d
}

// write replaces the file, as editors do.
func (d *desk) write(lines ...string) {
	d.t.Helper()
	require.NoError(d.t, os.WriteFile(d.file+".new", []byte(strings.Join(lines, "")), 0o600))
	require.NoError(d.t, os.Rename(d.file+".new", d.file))
}

func (d *desk) as(name, password, method, path string, form url.Values) (int, string) {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, d.url+path, strings.NewReader(form.Encode()))
	require.NoError(d.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if name != "" {
		r.SetBasicAuth(name, password)
	}
	w, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(d.t, err)
	defer w.Body.Close()
	body, err := io.ReadAll(w.Body)
	require.NoError(d.t, err)
	if w.StatusCode == http.StatusUnauthorized {
		require.Contains(d.t, w.Header.Get("WWW-Authenticate"), "Basic")
		require.NotContains(d.t, string(body), "claim")
	}
	return w.StatusCode, string(body)
}

// The API answers who has not signed in with a problem, as it does for every other error.
func TestTheAPIRefusesWithAProblem(t *testing.T) {
	d := newDesk(t, true, line(t, "ann", "correct horse", ":act"))
	for _, path := range []string{"api/v1/cases", "api/v1/nowhere", "api/v1/stream"} {
		code, text := d.as("ann", "wrong", http.MethodGet, path, nil)
		require.Equal(t, http.StatusUnauthorized, code)
		var problem struct {
			Status int
			Code   string
			Detail string
		}
		require.NoError(t, json.Unmarshal([]byte(text), &problem), text)
		require.Equal(t, "not-signed-in", problem.Code)
		require.Equal(t, code, problem.Status)
		require.Contains(t, problem.Detail, "sign in")
	}
	_, text := d.as("", "", http.MethodGet, "cases", nil)
	require.NotContains(t, text, "{", "a page is for people")
}

// Who is in the file signs in, sees the pages, does what the line allows, and is the actor of it in the history.
func TestUsersOfAFileSignIn(t *testing.T) {
	d := newDesk(t, true, "# who may\n\n", line(t, "ann", "correct horse", ":act"), line(t, "bob", "battery staple", ""),
		line(t, "eve", "tr0ub4dor", ": suspend, retry"))
	suspend := url.Values{"kind": {"suspend"}, "case": {d.id.String()}, "reason": {"look into it"}}
	for _, who := range [][2]string{{"", ""}, {"ann", ""}, {"ann", "battery staple"}, {"zoe", "correct horse"}, {"Ann", "correct horse"}} {
		code, _ := d.as(who[0], who[1], http.MethodGet, "", nil)
		require.Equal(t, http.StatusUnauthorized, code, who)
		code, _ = d.as(who[0], who[1], http.MethodPost, "act", suspend)
		require.Equal(t, http.StatusUnauthorized, code, who)
	}
	code, text := d.as("bob", "battery staple", http.MethodGet, "", nil)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, text, "read only")
	code, _ = d.as("bob", "battery staple", http.MethodPost, "act", suspend)
	require.Equal(t, http.StatusForbidden, code)
	_, text = d.as("ann", "correct horse", http.MethodGet, "cases/"+d.id.String(), nil)
	require.Contains(t, text, "Cancel case…")
	_, text = d.as("eve", "tr0ub4dor", http.MethodGet, "cases/"+d.id.String(), nil)
	require.NotContains(t, text, "Cancel case…")
	require.Contains(t, text, "Suspend…")
	code, _ = d.as("eve", "tr0ub4dor", http.MethodPost, "act", url.Values{"kind": {"cancel"}, "case": {d.id.String()}})
	require.Equal(t, http.StatusForbidden, code)
	code, _ = d.as("eve", "tr0ub4dor", http.MethodPost, "act", suspend)
	require.Equal(t, http.StatusSeeOther, code)
	require.NoError(t, d.View(t.Context(), func(r store.Reader) error {
		entries, err := r.Journal(t.Context(), store.JournalFilter{Root: d.id, By: "eve"})
		require.Len(t, entries, 1)
		return err
	}))
}

// Without the right of the server to act, no user has one.
func TestNoUserActsWithoutTheServersRight(t *testing.T) {
	d := newDesk(t, false, line(t, "ann", "correct horse", ":act"))
	code, text := d.as("ann", "correct horse", http.MethodGet, "", nil)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, text, "read only")
	code, _ = d.as("ann", "correct horse", http.MethodPost, "act", url.Values{"kind": {"suspend"}, "case": {d.id.String()}})
	require.Equal(t, http.StatusForbidden, code)
}

// A changed file holds at once, also for who has signed in; one that cannot be used changes nothing.
func TestAChangedFileOfUsersIsReadAgain(t *testing.T) {
	ann, bob := line(t, "ann", "correct horse", ""), line(t, "bob", "battery staple", "")
	d := newDesk(t, false, ann, bob)
	signsIn := func(name, password string) bool {
		code, _ := d.as(name, password, http.MethodGet, "", nil)
		return code == http.StatusOK
	}
	require.True(t, signsIn("bob", "battery staple"))
	require.True(t, signsIn("ann", "correct horse"))
	d.write(ann)
	require.False(t, signsIn("bob", "battery staple"))
	require.True(t, signsIn("ann", "correct horse"))
	d.write("ann:nonsense\n")
	require.True(t, signsIn("ann", "correct horse"))
	d.write(line(t, "ann", "another horse", ""))
	require.False(t, signsIn("ann", "correct horse"))
	require.True(t, signsIn("ann", "another horse"))
	require.NoError(t, os.Remove(d.file))
	require.True(t, signsIn("ann", "another horse"))
}

// A file that cannot be used is refused with its line, and without a password that stands there by mistake.
func TestBadFilesOfUsers(t *testing.T) {
	ann := line(t, "ann", "correct horse", "")
	costly := strings.Replace(ann, "$04$", "$31$", 1)
	for text, says := range map[string]string{
		"":                                   "has no users",
		"# none\n":                           "has no users",
		"ann\n":                              ":1: a line is NAME:HASH",
		ann + "\nbob:secret\n":               ":3: what stands behind the name \"bob\" is no bcrypt hash",
		ann + ann:                            ":2: a second line for \"ann\"",
		strings.TrimLeft(ann, "an"):          ":1: \"\" is no name",
		ann[:40]:                             ":1: what stands behind the name \"ann\" is no bcrypt hash",
		strings.Replace(ann, "\n", "!\n", 1): ":1: the hash of \"ann\" is no whole",
		costly:                               ":1: the hash of \"ann\" has cost 31",
		strings.Replace(ann, "\n", ":retri\n", 1):    ":1: \"retri\" is no right",
		strings.Replace(ann, "\n", ":retry,\n", 1):   ":1: \"\" is no right",
		strings.Replace(ann, "\n", ":act:look\n", 1): ":1: a line is NAME:HASH",
		"a\x01b" + ann: ":1: \"a\\x01bann\" is no name",
	} {
		file := filepath.Join(t.TempDir(), "users")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := serve.Open(enginetest.New(t).Engine, admin.Config{}, serve.Options{Listen: "127.0.0.1:0", Users: file})
		require.ErrorIs(t, err, serve.ErrUsers, "%q", text)
		require.ErrorContains(t, err, says, "%q", text)
		require.NotContains(t, err.Error(), "secret")
	}
	_, err := serve.Open(enginetest.New(t).Engine, admin.Config{}, serve.Options{Users: filepath.Join(t.TempDir(), "none")})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = serve.Open(enginetest.New(t).Engine, admin.Config{}, serve.Options{Users: "users", TrustHeader: "X-User"})
	require.ErrorContains(t, err, "name one of them")
}

// A line that is made is one that can be used.
func TestALineForAUser(t *testing.T) {
	made, err := serve.UserLine(" ann ", "correct horse")
	require.NoError(t, err)
	d := newDesk(t, false, made+"\n")
	code, _ := d.as("ann", "correct horse", http.MethodGet, "", nil)
	require.Equal(t, http.StatusOK, code)
	for _, bad := range [][2]string{{"", "correct horse"}, {"a:b", "correct horse"}, {"ann", "short"}, {"ann", strings.Repeat("long", 20)}} {
		_, err := serve.UserLine(bad[0], bad[1])
		require.Error(t, err, bad)
	}
}
