package xmlread

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// The limits that stand where [Limits] says nothing.
const (
	DefaultMaxBytes = 64 << 20
	DefaultMaxDepth = 512
	DefaultMaxNodes = 1 << 20
)

// Limits bounds what one file may cost. The zero value stands for the defaults.
type Limits struct {
	MaxBytes int64 // size of the input in bytes, at most 1 GiB; 64 MiB by default
	MaxDepth int   // elements inside one another; 512 by default
	MaxNodes int   // elements and attributes kept; 1 048 576 by default
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

// ReadAll returns the whole input, or an [*Error] with [TooLarge] if it is longer than limit bytes. An error of the
// reader itself is returned as it is.
func ReadAll(r io.Reader, file string, limit int64) (string, error) {
	limit = Limits{MaxBytes: limit}.orDefaults().MaxBytes
	var b strings.Builder // its String does not copy, so a file of 64 MiB is held once
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
