package view

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/admin/internal/access"
	"github.com/tasq-dev/tasq/admin/internal/selection"
)

// renamed are the parameters of lists that have another name in the form of a bulk action, which has fields of these
// names: the name there by that in the list.
var renamed = map[string]string{"kind": "incident", "payload": "payload-has"}

// codeInForm is the name of the list's parameter "code" in the form of an action that has a field of this name.
const codeInForm = "code-is"

// inForm returns the name of a list's parameter in the form of a bulk action.
func (a *action) inForm(name string) string {
	if other := renamed[name]; other != "" {
		return other
	}
	if name == codeField.Name && a.has(name) {
		return codeInForm
	}
	return name
}

// has reports whether the form of the action has a field.
func (a *action) has(name string) bool {
	return slices.ContainsFunc(a.fields, func(f field) bool { return f.Name == name })
}

// listed returns the filter in a form or an address of a bulk action, with the names that the list has.
func listed(form url.Values, a *action) url.Values {
	own := []string{"kind", "once", "until", "confirm", "done", forceParam}
	for _, f := range a.fields {
		own = append(own, f.Name)
	}
	v := url.Values{}
	for name, values := range form {
		if !slices.Contains(own, name) {
			v[name] = values
		}
	}
	names := maps.Clone(renamed)
	names[codeField.Name] = a.inForm(codeField.Name)
	for name, other := range names {
		if values, found := v[other]; found {
			delete(v, other) // which may be the same name
			v[name] = values
		}
	}
	return v
}

// bulkLink returns the address of the form of a bulk action on what a filter of a list selects. A parameter without a
// value stays, since it can have a meaning: the flag "suspended", or the code of failures without one.
func (s *Site) bulkLink(word string, filter url.Values) string {
	v, a := url.Values{"kind": {word}}, actions[word]
	for name, values := range filter {
		v[a.inForm(name)] = values
	}
	return s.Prefix + "/bulk?" + v.Encode()
}

// filterOf returns the parameters of a list that select its rows.
func filterOf(form url.Values, names []string) url.Values {
	v := url.Values{}
	for _, name := range names {
		if values, found := form[name]; found {
			v[name] = values
		}
	}
	return v
}

// chosen is what the form of a bulk action is about.
type chosen struct {
	*selection.Selection
	Back   string
	Filter url.Values // as of the list
}

// lack says which targets are left out for a missing definition.
func (c *chosen) lack() string {
	need := "need"
	if c.Lacking.N == 1 {
		need = "needs"
	}
	return fmt.Sprintf("%s, which %s workflow %s. No open engine has it: open a program with it.", counted(c.Lacking.N, c.What), need, c.Lacking.Names())
}

// choose finds the targets. until is the newest id that is included, "" for all.
func (h *forms) choose(r *http.Request, a *action, until string) (*chosen, error) {
	sel := &chosen{Filter: listed(r.Form, a)}
	c := &selection.Choice{Kind: a.kind, Do: a.act, Filter: sel.Filter, Until: until, Force: a.forced(r.Form), Now: h.Backend.Now(), User: access.UserOf(r.Context()), Mask: h.maskOf(r.Context())}
	err := h.bounded(r, func(ctx context.Context) (err error) {
		c.Here = h.Backend.Here()
		sel.Selection, err = selection.Find(ctx, h.Backend, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	back := url.Values{}
	for name, values := range sel.Filter {
		if name != selection.IDs {
			back[name] = values
		}
	}
	sel.Back = h.listLink("/"+sel.What+"s", back)
	return sel, nil
}

// listLink returns the address of a list with a filter.
func (s *Site) listLink(path string, filter url.Values) string {
	return strings.TrimSuffix(s.Prefix+path+"?"+filter.Encode(), "?")
}
