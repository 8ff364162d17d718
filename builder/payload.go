package builder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/workitem"
)

var errMissing = errors.New("the payload is missing")

// acceptor makes the function that turns JSON from outside into the canonical JSON of a T.
func acceptor[T any]() func(json.RawMessage) (json.RawMessage, error) {
	t := reflect.TypeFor[T]()
	return func(payload json.RawMessage) (json.RawMessage, error) {
		if absent(payload) {
			if canBeAbsent(t) {
				return nil, nil
			}
			if deref(t).Kind() != reflect.Struct {
				return nil, &domain.InvalidError{Type: t.String(), Err: errMissing}
			}
			payload = json.RawMessage("{}")
		}
		if payload[0] == unwritableMark {
			return nil, &domain.InvalidError{Type: t.String(), Err: errors.New(string(payload[1:]))}
		}
		if untyped(t) {
			return compact(payload)
		}
		return domain.Canonical[T](payload)
	}
}

// restore makes a T of JSON that was accepted, perhaps by an older version of the program: it is not validated again.
func restore[T any](accepted json.RawMessage) (T, error) {
	if absent(accepted) {
		var none T
		return none, nil
	}
	return domain.Restore[T](accepted)
}

// encode makes JSON of a value that a caller gives. Validation is left to the engine, which validates all that comes
// in.
func encode[T any](v T) (json.RawMessage, error) { return domain.Encode(v) }

// unwritableMark begins what is no JSON at all: the reason why a value could not be written as JSON, on its way to the
// acceptor, which has a way to report it.
const unwritableMark = '\x00'

func unwritable(reason error) json.RawMessage {
	return json.RawMessage(string(unwritableMark) + reason.Error())
}

func absent(payload json.RawMessage) bool {
	trimmed := bytes.TrimSpace(payload)
	return len(trimmed) == 0 || string(trimmed) == "null"
}

// canBeAbsent reports whether a payload of the type may be missing: nothing is then a value of it, and not a silent
// default.
func canBeAbsent(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface, reflect.Map, reflect.Slice:
		return true
	case reflect.Struct:
		return t.NumField() == 0
	}
	return false
}

// untyped reports whether any JSON is a value of the type. It is then kept as it came, with its numbers unrounded.
func untyped(t reflect.Type) bool {
	return t == reflect.TypeFor[json.RawMessage]() || t.Kind() == reflect.Interface && t.NumMethod() == 0
}

func deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func compact(payload json.RawMessage) (json.RawMessage, error) {
	if len(payload) > domain.MaxSize {
		return nil, fmt.Errorf("the payload is %w: %d bytes, and the limit is %d",
			domain.ErrTooLarge, len(payload), domain.MaxSize)
	}
	if err := domain.CheckJSON(payload); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err := json.Compact(&b, payload)
	return b.Bytes(), err
}

// acceptTask makes the function that accepts the payload of every action on a task's items.
func acceptTask[In, Out any]() func(workitem.Action, json.RawMessage) (json.RawMessage, error) {
	in, out := acceptor[In](), acceptor[Out]()
	return func(a workitem.Action, payload json.RawMessage) (json.RawMessage, error) {
		switch a {
		case workitem.Initialize:
			return in(payload)
		case workitem.Complete:
			return out(payload)
		case workitem.Fail, workitem.Cancel:
			return acceptFailure(payload)
		}
		if !absent(payload) {
			return nil, &domain.InvalidError{Type: "no payload", Err: fmt.Errorf("%s takes no payload; leave it out", a)}
		}
		return nil, nil
	}
}

// acceptFailure is the acceptor of what an action that fails or cancels an item says.
func acceptFailure(payload json.RawMessage) (json.RawMessage, error) {
	f, err := DecodeFailure(payload)
	if err != nil || f == nil {
		return nil, err
	}
	return domain.Encode(f)
}

// DecodeFailure reads a failure, or the reason of a cancellation, that comes from outside as JSON: an object with the
// fields of a [workitem.Failure], or plain words in quotes, which are its message. Where it does not say whether
// another attempt may help, one may, as everywhere else. Nothing and null are no failure: nil. The error is a
// [*domain.InvalidError].
func DecodeFailure(payload json.RawMessage) (*workitem.Failure, error) {
	if absent(payload) {
		return nil, nil
	}
	if bytes.TrimSpace(payload)[0] == '"' {
		words, err := domain.Decode[string](payload)
		return &workitem.Failure{Message: words, Retryable: true}, err
	}
	if _, err := domain.Decode[workitem.Failure](payload); err != nil {
		return nil, err
	}
	f := &workitem.Failure{Retryable: true}
	if err := json.Unmarshal(payload, f); err != nil {
		return nil, &domain.InvalidError{Type: "workitem.Failure", Err: err}
	}
	if f.After < 0 {
		return nil, &domain.InvalidError{Type: "workitem.Failure", Err: fmt.Errorf("after is %s; give zero or more", f.After)}
	}
	return f, nil
}
