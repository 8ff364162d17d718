package domain

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The longest name of a collection and the longest key, in bytes. PostgreSQL's index takes no more than 2700 for both.
const (
	maxName = 64
	maxKey  = 1024
)

// signed is the place of zero among the signed numbers: adding it turns their order into that of unsigned ones.
const signed = 1 << 63

// keyText returns the text of a key, as [Collection] describes it.
func keyText[K comparable](k K) (string, error) {
	v := reflect.ValueOf(&k).Elem()
	text := ""
	switch {
	case v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface:
		return "", badKeyType(v.Type())
	case isText(v.Type()):
		b, err := any(&k).(encoding.TextMarshaler).MarshalText()
		if err != nil {
			return "", fmt.Errorf("key %v as text: %w", k, err)
		}
		text = string(b)
	case v.Kind() == reflect.String:
		text = v.String()
	case v.CanInt() && v.Int() < 0:
		return fmt.Sprintf("0%019d", uint64(v.Int())-signed), nil
	case v.CanInt():
		return fmt.Sprintf("1%019d", v.Int()), nil
	case v.CanUint():
		return fmt.Sprintf("%020d", v.Uint()), nil
	default:
		return "", badKeyType(v.Type())
	}
	return text, checkKey(text)
}

func badKeyType(t reflect.Type) error {
	return fmt.Errorf("a key can't be of type %v: use a string, an integer, or a type with MarshalText", t)
}

// checkKey refuses what not every database can keep, or what cannot be meant.
func checkKey(text string) error {
	switch {
	case text == "":
		return fmt.Errorf("the key is empty")
	case len(text) > maxKey:
		return fmt.Errorf("the key is %d bytes long, and the limit is %d; it begins with %.32q", len(text), maxKey, text)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return fmt.Errorf("the key isn't text: %.64q; encode binary keys, as hex for example", text)
	}
	return nil
}

// keyOf is the reverse of keyText.
func keyOf[K comparable](text string) (k K, err error) {
	v := reflect.ValueOf(&k).Elem()
	switch {
	case isText(v.Type()):
		u, ok := any(&k).(encoding.TextUnmarshaler)
		if !ok {
			return k, fmt.Errorf("keys of type %v can't be read back: give it UnmarshalText", v.Type())
		}
		err = u.UnmarshalText([]byte(text))
	case v.Kind() == reflect.String:
		v.SetString(text)
	default:
		err = setInteger(v, text)
	}
	if err != nil {
		return k, fmt.Errorf("stored key %.64q isn't of type %v: %w", text, v.Type(), err)
	}
	return k, nil
}

func setInteger(v reflect.Value, text string) error {
	if v.CanUint() {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil || v.OverflowUint(n) {
			return strconv.ErrRange
		}
		v.SetUint(n)
		return nil
	}
	if len(text) != 20 || !v.CanInt() {
		return strconv.ErrSyntax
	}
	n, err := strconv.ParseUint(text[1:], 10, 64)
	if err != nil || n > math.MaxInt64 || text[0] > '1' || text[0] < '0' {
		return strconv.ErrSyntax
	}
	i := int64(n)
	if text[0] == '0' {
		i = int64(n - signed)
	}
	if v.OverflowInt(i) {
		return strconv.ErrRange
	}
	v.SetInt(i)
	return nil
}

// after returns the least text that is greater than every text with the prefix; "" if there is none. It counts in
// code points, whose order is that of their bytes in UTF-8, so that the result is text again.
func after(prefix string) string {
	runes := []rune(prefix)
	for i := len(runes) - 1; i >= 0; i-- {
		next := runes[i] + 1
		if next == 0xD800 { // the surrogates aren't text
			next = 0xE000
		}
		if next <= utf8.MaxRune {
			return string(runes[:i]) + string(next)
		}
	}
	return ""
}

// hasTextKeys reports whether a K is kept as the text that it is, so that prefixes mean something.
func hasTextKeys[K comparable]() bool {
	t := reflect.TypeFor[K]()
	return isText(t) || t.Kind() == reflect.String
}
