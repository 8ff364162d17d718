package domain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// pathAt names the field, or the element of a list, that begins at a byte of JSON, such as "items[2].name".
func pathAt(data []byte, at int) string {
	p := &placer{dec: json.NewDecoder(bytes.NewReader(data)), at: int64(at)}
	p.dec.UseNumber()
	p.value()
	return strings.TrimPrefix(strings.Join(p.path, ""), ".")
}

// placer reads JSON token by token up to a byte.
type placer struct {
	dec  *json.Decoder
	at   int64
	path []string
}

// token returns the next one, and whether it is the one that begins at the byte, or there is none.
func (p *placer) token() (json.Token, bool) {
	token, err := p.dec.Token()
	return token, err != nil || p.dec.InputOffset() > p.at
}

// value reads a value, and reports whether it has come to the byte. Then the path leads there.
func (p *placer) value() bool {
	token, found := p.token()
	open, _ := token.(json.Delim)
	if found || open == 0 {
		return found
	}
	for i := 0; p.dec.More(); i++ {
		step := fmt.Sprintf("[%d]", i)
		if open == '{' {
			key, isKey := p.token()
			step = fmt.Sprintf(".%v", key)
			found = isKey
		}
		p.path = append(p.path, step)
		if found || p.value() {
			return true
		}
		p.path = p.path[:len(p.path)-1]
	}
	_, found = p.token() // what ends it
	return found
}

// findTwice returns the first field of a type that JSON of it names a second time, in other letters, with the byte behind that name; -1 if
// there is none.
func findTwice(t reflect.Type, data []byte) (path string, at int) {
	f := &finder{dec: json.NewDecoder(bytes.NewReader(data)), fields: make(map[reflect.Type][]field), twiceAt: -1}
	f.dec.UseNumber()
	f.value(t)
	return f.twice, f.twiceAt
}
