package yawl

import (
	"archive/zip"
	"compress/flate"
	"errors"
	"io"
	"path"
	"strings"

	"github.com/tasq-dev/tasq/net/internal/xmlread"
)

// unzip returns a compressed specification. The decompressed size is limited as for any other file.
func unzip(src string, o Options) (string, error) {
	damaged := func(err error) error {
		return &Error{File: o.File, Code: Malformed, Text: "it is a zip archive that cannot be unpacked: " + zipReason(err)}
	}
	archive, err := zip.NewReader(strings.NewReader(src), int64(len(src)))
	if err != nil {
		return "", damaged(err)
	}
	for _, f := range archive.File {
		if path.Ext(f.Name) != ".xml" {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return "", damaged(err)
		}
		text, err := xmlread.ReadAll(r, o.File, o.MaxBytes)
		var refusal *Error
		if err != nil && !errors.As(err, &refusal) {
			return "", damaged(err)
		}
		return text, err
	}
	return "", &Error{File: o.File, Code: WrongFormat, Text: "it is a zip archive without an XML file in it"}
}

// zipReason returns the reason why an archive cannot be read. Errors about offsets describe the reader, not the file,
// so they are replaced.
func zipReason(err error) string {
	var corrupt flate.CorruptInputError
	for _, known := range []error{zip.ErrFormat, zip.ErrAlgorithm, zip.ErrChecksum, io.ErrUnexpectedEOF} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if errors.As(err, &corrupt) {
		return corrupt.Error()
	}
	return "its parts are not where it says they are"
}

// cutBeans removes the rest after the end of an editor's file. Some editors overwrote the older version of a file
// without truncating it. The second result is the line where the rest begins, 0 if there is none.
func cutBeans(src string) (string, int) {
	const end = "</java>"
	i := strings.Index(src, end)
	if i < 0 || !strings.Contains(src[:min(i, 1000)], "<java") || strings.TrimSpace(src[i+len(end):]) == "" {
		return src, 0
	}
	return src[:i+len(end)], strings.Count(src[:i], "\n") + 1
}
