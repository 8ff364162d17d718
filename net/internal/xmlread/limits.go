package xmlread

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// The defaults of [Limits].
const (
	DefaultMaxBytes = 64 << 20
	DefaultMaxDepth = 512
	DefaultMaxNodes = 1 << 20
)

// Limits limits the cost of reading a file. The zero value means the defaults.
type Limits struct {
	MaxBytes int64 // size of the input in bytes, at most 1 GiB; 64 MiB by default
	MaxDepth int   // nesting of elements; 512 by default
	MaxNodes int   // number of elements and attributes; 1 048 576 by default
}

func (l Limits) orDefaults() Limits {
	if l.MaxBytes <= 0 {
		l.MaxBytes = DefaultMaxBytes
	}
	l.MaxBytes = min(l.MaxBytes, 1<<30) // positions are kept in 32 bits
	if l.MaxDepth <= 0 {
		l.MaxDepth = DefaultMaxDepth
	}
	if l.MaxNodes <= 0 {
		l.MaxNodes = DefaultMaxNodes
	}
	return l
}

// ReadAll returns the whole input, or an [*Error] with [TooLarge] if it is longer than limit bytes. It returns an error
// of the reader unchanged.
func ReadAll(r io.Reader, file string, limit int64) (string, error) {
	limit = Limits{MaxBytes: limit}.orDefaults().MaxBytes
	var b strings.Builder // its String does not copy, so a file of 64 MiB is in memory only once
	n, err := io.Copy(&b, io.LimitReader(r, limit+1))
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if n > limit {
		return "", &Error{File: file, Code: TooLarge,
			Text: fmt.Sprintf("the file is longer than the limit of %d bytes", limit)}
	}
	return b.String(), nil
}
