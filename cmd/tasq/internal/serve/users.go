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

// ErrUsers is the error of an invalid file of users.
var ErrUsers = errors.New("the file of users cannot be used")

// The rights of a user without a list of kinds of commands.
const (
	rightLook = "look" // no command; the default
	rightAct  = "act"  // every command
)

// maxCost limits the cost of a hash: each step doubles the time of a sign-in, which is about a second at this cost.
const maxCost = 14

// hashDigits are the characters of a hash after its cost.
const hashDigits = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// person is an entry in a file of users.
type person struct {
	hash  []byte
	all   bool     // may execute all commands
	words []string // may execute these kinds of commands
}

func (p *person) may(kind, _ string) bool { return p.all || slices.Contains(p.words, kind) }

// users has the entries of a file, which is read again when it changes.
type users struct {
	log  *slog.Logger
	act  bool
	salt []byte // for the proofs; random for each process

	mu     sync.Mutex
	file   file
	failed string // why the file is invalid; "" if it is valid
	people map[string]*person
	proofs map[string][]byte // proof of the last valid password of each user, since bcrypt is slow by design, and a page causes many requests

	dummyHash []byte // compared for unknown names, so that they take the same time

	hashing sync.Mutex // checks one sign-in at a time, so that guesses do not use all processors
}

// openUsers reads a file of users. The error wraps [ErrUsers] and names the line.
func openUsers(path string, act bool, log *slog.Logger) (*users, error) {
	u := &users{file: file{path: path}, act: act, log: cmp.Or(log, slog.Default()), salt: make([]byte, 32)}
	if _, err := rand.Read(u.salt); err != nil {
		return nil, err
	}
	return u, u.read()
}

// read parses the file.
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

// refresh reads the file again if it has changed. If it is invalid, the users stay the same, and the error is logged
// once.
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

// find returns the user of a request; ok is false if the name or the password is wrong.
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

// check compares a password with the hash, and caches the proof of a correct one.
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

// entrance is a handler that requires a user, and otherwise asks the browser for a name and a password.
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

// refuse writes the response to a request without a valid user: a JSON problem for the API, and text for a browser.
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

// access returns the user that [users.entrance] found.
func (u *users) access(r *http.Request) (admin.User, error) {
	user, ok := r.Context().Value(signedIn{}).(admin.User)
	if !ok {
		return user, errors.New("no user has signed in")
	}
	return user, nil
}

// parseUsers parses the lines NAME:HASH[:RIGHTS] of a file. It skips empty lines and lines that begin with #.
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
	switch cost, err := bcrypt.Cost(p.hash); { // the message omits the line, which may have a password instead of a hash
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

// userName validates the name of a user, which becomes the actor of commands.
func userName(text string) (string, error) {
	name := strings.TrimSpace(text)
	if name == "" || len(name) > 100 || strings.ContainsFunc(name, func(r rune) bool { return r == ':' || !unicode.IsPrint(r) }) {
		return "", fmt.Errorf("%q is no name of a user: it needs 1 to 100 bytes of visible characters, without a colon", name)
	}
	return name, nil
}

// grant parses the rights of a line.
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

// UserLine returns a line for a file of users: the name, and the bcrypt hash of the password. The user may only read.
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
