package builder

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/workflow"
)

// identifier makes a part of the identity of a case from its input.
type identifier struct {
	name string       // of a label; "" for the business key
	in   reflect.Type // of the input that the function is given
	of   func(json.RawMessage) (string, error)
}

// Label sets a label by which a case can be found, computed from its input, such as the customer of an order: with
// store.CaseFilter.Labels, and with tasq cases --label. An empty value is no label. The function must be fast and depend on the
// input only. The start of a case may set another value, see [workflow.Label]; after that a label cannot change.
func Label[C any](name string, of func(C) string) Option {
	return func(d *draft) {
		if err := workflow.CheckLabelName(name); err != nil {
			d.problem(BadIdentity, d.name, d.pos, "a label of workflow %q: %s", d.name, oneLine(err))
		}
		if of == nil {
			d.problem(NilFunction, d.name, d.pos, "label %q of workflow %q is given no function", name, d.name)
		}
		d.identify(identifier{name, reflect.TypeFor[C](), withInput(of)})
	}
}

// BusinessKey sets a key by which a case can be found, such as an order number: with store.CaseFilter.Key, and with tasq cases --key.
// An empty string is no key. Several cases may have the same key, unless [UniqueKey] is given, too.
func BusinessKey[C any](of func(C) string) Option {
	return func(d *draft) {
		if of == nil {
			d.problem(NilFunction, d.name, d.pos, "the business key of workflow %q is given no function", d.name)
		}
		d.identify(identifier{"", reflect.TypeFor[C](), withInput(of)})
	}
}

// UniqueKey refuses a root case whose business key another root case of the workflow holds: one that has not ended, or that has completed.
// One that failed or was canceled releases its key, and cannot be resumed while another holds it. The error is a
// [*workflow.KeyTakenError].
func UniqueKey() Option { return func(d *draft) { d.uniqueKey = true } }

func (d *draft) identify(i identifier) {
	for _, other := range d.identity {
		if other.name == i.name {
			d.problem(BadIdentity, d.name, d.pos, "workflow %q has %s twice; give it once", d.name, i)
		}
	}
	d.identity = append(d.identity, i)
}

// String names what it makes, for a problem and for the document.
func (i identifier) String() string {
	if i.name == "" {
		return "a business key"
	}
	return "label " + i.name
}

// checkIdentity finds functions of another input than that of the workflow.
func (d *draft) checkIdentity(in reflect.Type, pos net.Pos) {
	for _, i := range d.identity {
		if i.in != in {
			d.problem(BadIdentity, d.name, pos, "the function for %s of workflow %q takes %s, and the input is %s; let it take that",
				i, d.name, i.in, in)
		}
	}
}

// identityOf is what the engine works with; nil if there is nothing.
func (d *draft) identityOf() func(json.RawMessage) (workflow.Identity, error) {
	if len(d.identity) == 0 {
		return nil
	}
	all := d.identity
	return func(input json.RawMessage) (workflow.Identity, error) {
		id := workflow.Identity{Labels: make(map[string]string)}
		for _, i := range all {
			value, err := i.of(input)
			switch {
			case err != nil:
				return id, fmt.Errorf("%s: %w", i, err)
			case i.name == "":
				id.Key = value
			default:
				id.Labels[i.name] = value
			}
		}
		return id, nil
	}
}
