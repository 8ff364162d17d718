package serve

import (
	"io/fs"
	"os"
)

// file is a file that is read again when it changes.
type file struct {
	path string
	seen fs.FileInfo // as it was when it was read last; nil before
}

// read returns what the file holds.
func (f *file) read() ([]byte, error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(f.path)
	if err == nil {
		f.seen = info // of before, so that a change meanwhile is one
	}
	return text, err
}

// changed reports whether the file is another one than that which was read, or cannot be looked at.
func (f *file) changed() bool {
	info, err := os.Stat(f.path)
	return err != nil || f.seen == nil || !os.SameFile(info, f.seen) || !info.ModTime().Equal(f.seen.ModTime()) || info.Size() != f.seen.Size()
}
