package view

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"html/template"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

//go:embed templates
var templateFiles embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"sign": sign, "iso": iso, "utc": utc, "lower": strings.ToLower, "pretty": pretty, "thousands": thousands,
}).ParseFS(templateFiles, "templates/*.html"))

// signs are the marks of states, so that no state is shown by color alone.
var signs = map[string]string{
	"started": "▶", "running": "▶", "completed": "✓", "done": "✓", "failed": "✕", "canceled": "⊘", "initialized": "○", "enabled": "○",
	"pending": "○", "waiting": "◔", "disabled": "–", "incident": "!", "retry": "↻", "person": "☺", "worker": "⚙", "delay": "◔", "timer": "◔",
	"event": "✉", "topic": "✉", "case": "▣", "turn": "▣", "join": "?", "stuck": "✕", "good": "✓", "bad": "✕", "warn": "!", "suspended": "‖", "active": "▶", "open": "▶", "paused": "‖", "failing": "✕", "over": "–", "removed": "–",
}

func sign(state string) string { return signs[state] }

func iso(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

// maxPayload bounds the part of a payload that is shown; the API returns all of it.
const maxPayload = 16 << 10

// pretty formats a payload: indented, if that changes only white space.
func pretty(raw []byte) string {
	if len(raw) > maxPayload {
		return strings.ToValidUTF8(string(raw[:maxPayload]), "\uFFFD") + "…"
	}
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// write writes a page: complete or, for the script, its parts as JSON.
func (s *Site) write(w http.ResponseWriter, r *http.Request, p *Page) {
	status := p.Status
	if status == 0 {
		status = http.StatusOK
	}
	var b bytes.Buffer
	kind := "text/html; charset=utf-8"
	err := p.render()
	switch {
	case err != nil:
	case r.Header.Get("Accept") == "application/json":
		kind = "application/json"
		w.Header().Set("X-Seen", p.seen)
		err = json.NewEncoder(&b).Encode(p.updated())
	default:
		err = templates.ExecuteTemplate(&b, "page.html", p)
	}
	if err != nil {
		s.broken(w, err)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Add("Vary", "Accept")
	send(w, r, status, b.Bytes())
}

// send writes a body, compressed if the client accepts that and it helps.
func send(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	w.Header().Add("Vary", "Accept-Encoding")
	if len(body) < 1<<10 || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.WriteHeader(status)
		_, _ = w.Write(body) // the client may have gone
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(status)
	z := gzip.NewWriter(w)
	_, _ = z.Write(body)
	_ = z.Close()
}

func (s *Site) broken(w http.ResponseWriter, err error) {
	s.Log.Error("tasq pages: a page cannot be written", "error", err)
	http.Error(w, "the page cannot be written; the log of the program says why", http.StatusInternalServerError)
}

// render renders each part. The templates escape the data.
func (p *Page) render() error {
	p.html = make(map[string]template.HTML, len(p.Parts))
	sum := fnv.New64a()
	for _, part := range p.Parts {
		var b bytes.Buffer
		if err := templates.ExecuteTemplate(&b, part.Template, part.Data); err != nil {
			return fmt.Errorf("part %s: %w", part.ID, err)
		}
		if !part.Static {
			_, _ = sum.Write(b.Bytes()) // a hash never fails
		}
		p.html[part.ID] = template.HTML(b.String()) // #nosec: html/template wrote it
	}
	p.seen = strconv.FormatUint(sum.Sum64(), 36)
	return nil
}

// updated are the rendered parts that change while the page is open.
func (p *Page) updated() map[string]template.HTML {
	html := maps.Clone(p.html)
	for _, part := range p.Parts {
		if part.Static {
			delete(html, part.ID)
		}
	}
	return html
}

// Part returns the HTML of a part.
func (p *Page) Part(part Part) template.HTML { return p.html[part.ID] }

// Link returns the address of a path of the site.
func (p *Page) Link(path string) string { return p.site.Prefix + path }

// Asset returns the address of a file, with a name that contains a hash of its content.
func (p *Page) Asset(name string) string {
	return p.site.Prefix + "/assets/" + p.site.assets.named(name)
}

// Entries returns the entries of the navigation.
func (p *Page) Entries() []Link {
	return p.entries("Overview", "/", "Workflows", "/workflows", "Cases", "/cases", "Items", "/items", "Jobs", "/jobs", "Schedules", "/schedules", "Incidents", "/incidents")
}

// More returns the folded entries of the navigation.
func (p *Page) More() []Link {
	return p.entries("Steps", "/steps", "Events", "/events", "Statistics", "/stats", "Limits", "/limits", bulkTitle, "/bulk", "Doctor", "/doctor", "Audit", "/audit", "Help", "/help")
}

// Folded returns the present entry if it is a folded one; "" if it is not.
func (p *Page) Folded() string {
	for _, e := range p.More() {
		if e.Current {
			return e.Text
		}
	}
	return ""
}

// entries returns links from pairs of a text and a path.
func (p *Page) entries(pairs ...string) []Link {
	var entries []Link
	for i := 0; i < len(pairs); i += 2 {
		entries = append(entries, Link{Text: pairs[i], Href: pairs[i+1]})
	}
	for i := range entries {
		e := &entries[i]
		e.Current = e.Text == p.Nav
		e.Href = p.site.Prefix + e.Href
		if e.Text == "Incidents" && p.Open > 0 {
			e.Count = thousands(int64(p.Open))
			if p.Open >= maxOpen {
				e.Count = fmt.Sprintf("%d+", maxOpen-1)
			}
		}
	}
	return entries
}

// Acts reports whether the user may send any command.
func (p *Page) Acts() bool { return p.User.May != nil }

// Stream returns the address from which the script gets changes of this page; "" if it does not change.
func (p *Page) Stream() string {
	if !p.Live || p.Past {
		return ""
	}
	return p.site.Prefix + "/live?seen=" + p.seen + "&page=" + template.URLQueryEscaper(p.self.RequestURI())
}
