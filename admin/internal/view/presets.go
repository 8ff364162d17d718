package view

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tasq-dev/tasq/internal/printable"
)

// Preset is a named filter of a list.
type Preset struct {
	Name  string `json:"name"`  // the text of its link, at most 40 characters
	Path  string `json:"path"`  // of the list, without the prefix of the pages: "/cases", "/items", "/jobs", "/steps", "/events", "/incidents" or "/audit"
	Query string `json:"query"` // the filters, as in the address of the list: "state=failed&newer=24h"
}

// The bounds of presets: a browser stores a cookie of up to 4,096 bytes.
const (
	maxPresetName  = 40
	maxPresetBytes = 3800
)

// presets are those of every program.
var presets = []Preset{
	{"failed, created in 24 h", "/cases", "state=failed&newer=24h"}, {"started over a day ago", "/cases", "state=started&older=1d"}, {"suspended", "/cases", "suspended=true"},
	{"failed, created in 24 h", "/items", "state=failed&newer=24h"}, {"waiting longer than a day", "/items", "state=initialized&older=1d"}, {"retried", "/items", "attempt=2"},
	{"due now", "/jobs", "state=pending,waiting&due=0s"}, {"due within an hour", "/jobs", "state=pending,waiting&due=1h"}, {"waiting for events", "/steps", "state=waiting&kind=event"},
	{"not taken", "/events", "unread=true"}, {"open longer than a day", "/incidents", "older=1d"}, {"last 24 h", "/audit", "newer=24h"},
}

// presetPaths are the lists that have presets.
var presetPaths = []string{"/cases", "/items", "/jobs", "/steps", "/events", "/incidents", "/audit"}

// Check returns an error that says what is wrong with the preset.
func (p *Preset) Check() error {
	v, err := url.ParseQuery(p.Query)
	switch {
	case strings.TrimSpace(p.Name) == "":
		return errors.New("a preset needs a name")
	case !utf8.ValidString(p.Name) || utf8.RuneCountInString(p.Name) > maxPresetName:
		return fmt.Errorf("the name of a preset has at most %d characters: %q", maxPresetName, printable.Line(p.Name))
	case !slices.Contains(presetPaths, p.Path):
		return fmt.Errorf("the preset %q is of the path %q: give one of %s", printable.Line(p.Name), printable.Line(p.Path), strings.Join(presetPaths, ", "))
	case err != nil:
		return fmt.Errorf("the preset %q has an invalid query: %w", printable.Line(p.Name), err)
	case len(plainQuery(v)) == 0:
		return fmt.Errorf("the preset %q has no filter: give a query such as state=failed", printable.Line(p.Name))
	}
	return nil
}

// plainQuery are the filters of an address, without what says how its page is shown.
func plainQuery(v url.Values) url.Values {
	plain := url.Values{}
	for name, all := range v {
		if name != "cursor" && name != "done" && name != "before" && name != filterForm {
			plain[name] = all
		}
	}
	return plain
}

// presetBar shows the presets of a list. It is not updated while the page is open: live pages are rendered once for all users, and the presets of a
// browser are its own.
type presetBar struct {
	Links   []Link
	Action  string
	Path    string
	Present string // the filters that are set
	Query   string // what can be saved of them; "" if no filter is set, or a preset has it
	Remove  string // the name of the present preset, if it is one of the browser
}

// presetBar returns the part with the presets of the list; nil if it has none.
func (l *listing) presetBar() []Part {
	if !slices.Contains(presetPaths, l.path) {
		return nil
	}
	query := plainQuery(l.r.Form).Encode()
	bar := presetBar{Action: l.s.Link("/presets"), Path: l.path, Present: query, Query: query}
	own := ownPresets(l.r.Request)
	for i, p := range slices.Concat(presets, l.s.Presets, own) {
		if p.Path != l.path {
			continue
		}
		v, _ := url.ParseQuery(p.Query) // it is checked
		link := Link{Text: printable.Line(p.Name), Href: l.s.Prefix + p.Path + "?" + p.Query, Current: plainQuery(v).Encode() == query}
		if link.Current {
			link.Href, bar.Query = l.s.Prefix+p.Path, ""
			if i >= len(presets)+len(l.s.Presets) {
				bar.Remove = p.Name
			}
		}
		bar.Links = append(bar.Links, link)
	}
	return []Part{{ID: "presets", Template: "presets", Data: bar, Static: true}}
}

// presetCookie has the presets of a browser, in JSON.
const presetCookie = "tasq-presets"

// ownPresets are the presets that the browser of a request has saved. What is not valid is left out.
func ownPresets(r *http.Request) (own []Preset) {
	c, err := r.Cookie(presetCookie)
	if err != nil {
		return nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil || json.Unmarshal(raw, &own) != nil {
		return nil
	}
	return slices.DeleteFunc(own, func(p Preset) bool { return p.Check() != nil })
}

// savePreset saves a filter of a list under a name in the browser, or removes one.
func (h *forms) savePreset(w http.ResponseWriter, r *http.Request) {
	if !h.posted(w, r) {
		return
	}
	p := Preset{strings.TrimSpace(r.PostForm.Get("name")), r.PostForm.Get("path"), r.PostForm.Get("query")}
	if err := p.Check(); err != nil {
		h.say(w, r, http.StatusBadRequest, "The filter is not saved", err.Error())
		return
	}
	v, _ := url.ParseQuery(p.Query) // it is checked
	p.Query = plainQuery(v).Encode()
	own := slices.DeleteFunc(ownPresets(r), func(o Preset) bool { return o.Path == p.Path && o.Name == p.Name })
	if !r.PostForm.Has("remove") {
		own = append(own, p)
	}
	raw, err := json.Marshal(own)
	value := base64.RawURLEncoding.EncodeToString(raw)
	if err != nil || len(value) > maxPresetBytes {
		h.say(w, r, http.StatusBadRequest, "The filter is not saved", "A browser stores no more than this: remove another saved filter first, or shorten this one.")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: presetCookie, Value: value, Path: h.Prefix + "/", MaxAge: 400 * 24 * 3600, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode})
	http.Redirect(w, r, h.Prefix+p.Path+"?"+p.Query, http.StatusSeeOther)
}
