package serve

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/crypto/bcrypt"

	"github.com/tasq-dev/tasq/admin"
	"github.com/tasq-dev/tasq/engine/schedules"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/workflow"
)

// ErrUsers is for a file of users that cannot be understood.
var ErrUsers = errors.New("the file of users cannot be used")

// The rights of a line without words of commands.
const (
	rightLook = "look" // no command; that of a line without rights, too
	rightAct  = "act"  // every command
)

// maxCost bounds the cost of a hash: each step up doubles the time of a sign-in, which is about a second here.
const maxCost = 14

// hashDigits are the characters of a hash behind its cost.
const hashDigits = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// person is a line of a file of users.
type person struct {
	hash  []byte
	all   bool     // may have every command done
	words []string // may have these kinds of commands done
}

func (p *person) may(kind, _ string) bool { return p.all || slices.Contains(p.words, kind) }

// users are the people of a file, which is read again when it changes.
type users struct {
	log  *slog.Logger
	act  bool
	salt []byte // of the proofs; a process has its own

	mu     sync.Mutex
	file   file
	failed string // why it cannot be read now; "" if it can
	people map[string]*person
	proofs map[string][]byte // of the password that a user signed in with last: bcrypt is slow on purpose, and a page has many requests

	dummyHash []byte // compared for names that are not there, so that they take as long

	hashing sync.Mutex // one sign-in at a time is checked, so that guesses do not take every processor
}

// openUsers reads a file of users. The error wraps [ErrUsers] and names the line.
func openUsers(path string, act bool, log *slog.Logger) (*users, error) {
	u := &users{file: file{path: path}, act: act, log: cmp.Or(log, slog.Default()), salt: make([]byte, 32)}
	if _, err := rand.Read(u.salt); err != nil {
		return nil, err
	}
	return u, u.read()
}

// read reads the file.
func (u *users) read() error {
	text, err := u.file.read()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUsers, err)
	}
	people, err := parseUsers(u.file.path, text)
	if err != nil {
		return err
	}
	cost := bcrypt.MinCost
	for _, p := range people {
		its, _ := bcrypt.Cost(p.hash)
		cost = max(cost, its)
	}
	dummyHash, err := bcrypt.GenerateFromPassword(u.salt, cost)
	u.people, u.proofs, u.dummyHash = people, make(map[string][]byte), dummyHash
	return err
}

// refresh reads the file again if it changed. One that cannot be used leaves the users as they were, and is logged once.
func (u *users) refresh() {
	if !u.file.changed() {
		return
	}
	err := u.read()
	if err == nil {
		u.log.Info("tasq pages: the file of users is read again", "file", u.file.path, "users", len(u.people))
		u.failed = ""
		return
	}
	if text := err.Error(); text != u.failed {
		u.failed = text
		u.log.Error("tasq pages: the file of users is not read again; those of before stay", "error", err)
	}
}

// find returns the user of a request; ok is false if its name and password are none of the file's.
func (u *users) find(r *http.Request) (user admin.User, ok bool) {
	name, password, given := r.BasicAuth()
	if !given {
		return user, false
	}
	mac := hmac.New(sha256.New, u.salt)
	mac.Write([]byte(password))
	proof := mac.Sum(nil)
	u.mu.Lock()
	u.refresh()
	p, dummyHash := u.people[name], u.dummyHash
	known := p != nil && hmac.Equal(u.proofs[name], proof)
	u.mu.Unlock()
	if p == nil {
		p, known = &person{hash: dummyHash}, false
	}
	if !known && !u.check(name, p, password, proof) {
		u.log.Warn("tasq pages: a sign-in is refused", "user", name, "from", r.RemoteAddr)
		return user, false
	}
	user.Name = name
	if u.act && (p.all || len(p.words) > 0) {
		user.May = p.may
	}
	return user, true
}

// check compares a password with the hash, and remembers the proof of the right one.
func (u *users) check(name string, p *person, password string, proof []byte) bool {
	u.hashing.Lock()
	err := bcrypt.CompareHashAndPassword(p.hash, []byte(password))
	u.hashing.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	if err != nil || u.people[name] != p { // the file may have changed meanwhile
		return false
	}
	u.proofs[name] = proof
	return true
}

type signedIn struct{}

// entrance lets users in, and has the browsers of others ask for a name and a password.
func (u *users) entrance(pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, ok := u.find(r)
		if !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="tasq", charset="UTF-8"`)
			w.Header().Set("Cache-Control", "no-store")
			refuse(w, r)
			return
		}
		pages.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), signedIn{}, user)))
	})
}

// refuse answers who has not signed in: a problem in JSON, as of every other error, to a program that calls the API, and a text to a browser.
func refuse(w http.ResponseWriter, r *http.Request) {
	const text = "sign in with a name and a password of the file of users"
	if !strings.HasPrefix(r.URL.Path, "/api/") {
		http.Error(w, text, http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusUnauthorized)
	fmt.Fprintf(w, `{"title":%q,"status":%d,"detail":%q,"code":"not-signed-in"}`+"\n", http.StatusText(http.StatusUnauthorized), http.StatusUnauthorized, text)
}

// access is the user that [users.entrance] found.
func (u *users) access(r *http.Request) (admin.User, error) {
	user, ok := r.Context().Value(signedIn{}).(admin.User)
	if !ok {
		return user, errors.New("no user has signed in")
	}
	return user, nil
}

// parseUsers reads the lines NAME:HASH[:RIGHTS] of a file. Empty lines and those that begin with # are left out.
func parseUsers(path string, text []byte) (map[string]*person, error) {
	people, n := make(map[string]*person), 0
	for line := range bytes.Lines(text) {
		n++
		line := strings.TrimSpace(string(line))
		if line == "" || line[0] == '#' {
			continue
		}
		name, p, err := parseUser(line)
		if err == nil && people[name] != nil {
			err = fmt.Errorf("a second line for %q; remove one of them", name)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s:%d: %w", ErrUsers, path, n, err)
		}
		people[name] = p
	}
	if len(people) == 0 {
		return nil, fmt.Errorf("%w: %s has no users; a line is NAME:HASH:RIGHTS, and tasq serve --hash NAME makes one", ErrUsers, path)
	}
	return people, nil
}

func parseUser(line string) (name string, p *person, err error) {
	fields := strings.Split(line, ":")
	if len(fields) < 2 || len(fields) > 3 {
		return "", nil, errors.New("a line is NAME:HASH or NAME:HASH:RIGHTS, with colons between")
	}
	if name, err = userName(fields[0]); err != nil {
		return "", nil, err
	}
	p = &person{hash: []byte(strings.TrimSpace(fields[1]))}
	switch cost, err := bcrypt.Cost(p.hash); { // the line is not in the message: it may have a password where its hash should be
	case err != nil:
		return "", nil, fmt.Errorf("what stands behind the name %q is no bcrypt hash; tasq serve --hash %s makes a line", name, printable.Word(name))
	case cost > maxCost:
		return "", nil, fmt.Errorf("the hash of %q has cost %d, and %d is the most: a sign-in would take many seconds", name, cost, maxCost)
	case len(p.hash) != 60 || strings.Trim(string(p.hash[7:]), hashDigits) != "":
		return "", nil, fmt.Errorf("the hash of %q is no whole bcrypt hash, of 60 characters: it is cut off, or something follows it", name)
	}
	if len(fields) == 3 {
		err = p.grant(fields[2])
	}
	return name, p, err
}

// userName checks the name of a user, which becomes the actor of commands.
func userName(text string) (string, error) {
	name := strings.TrimSpace(text)
	if name == "" || len(name) > 100 || strings.ContainsFunc(name, func(r rune) bool { return r == ':' || !unicode.IsPrint(r) }) {
		return "", fmt.Errorf("%q is no name of a user: it needs 1 to 100 bytes of visible characters, without a colon", name)
	}
	return name, nil
}

// grant reads the rights of a line.
func (p *person) grant(text string) error {
	for word := range strings.SplitSeq(text, ",") {
		switch word = strings.TrimSpace(word); {
		case word == "" && strings.TrimSpace(text) == "", word == rightLook:
		case word == rightAct:
			p.all = true
		case slices.Contains(workflow.Kinds(), workflow.Kind(word)), word == schedules.Name:
			p.words = append(p.words, word)
		default:
			return fmt.Errorf("%q is no right; rights are %s, %s, or kinds of commands with commas between: %s, %v", word, rightLook, rightAct,
				schedules.Name, workflow.Kinds())
		}
	}
	return nil
}

// UserLine is a line of a file of users: the name, and the bcrypt hash of the password. The user may look.
func UserLine(name, password string) (string, error) {
	name, err := userName(name)
	if err != nil {
		return "", err
	}
	if len(password) < 8 {
		return "", fmt.Errorf("the password of %q has %d bytes; it needs 8 at least", name, len(password))
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	if err != nil {
		return "", fmt.Errorf("the password of %q: %w", name, err)
	}
	return name + ":" + string(hash), nil
}
