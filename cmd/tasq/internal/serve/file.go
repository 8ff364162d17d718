package serve

import (
	"io/fs"
	"os"
)

// file is a file that is read again when it changes.
type file struct {
	path string
	seen fs.FileInfo // as of the last read; nil before
}

// read returns the content of the file.
func (f *file) read() ([]byte, error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(f.path)
	if err == nil {
		f.seen = info // from before the read, so that a change during it is detected
	}
	return text, err
}

// changed reports whether the file has changed since it was read, or cannot be checked.
func (f *file) changed() bool {
	info, err := os.Stat(f.path)
	return err != nil || f.seen == nil || !os.SameFile(info, f.seen) || !info.ModTime().Equal(f.seen.ModTime()) || info.Size() != f.seen.Size()
}
