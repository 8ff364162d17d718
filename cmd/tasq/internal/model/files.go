package model

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// OpenFile opens a file for reading. It refuses files that may block or never end: a named pipe, a socket or a device,
// unless the process already has the file open (/dev/stdin, /dev/fd/3). The error is that of the file system, or a
// [*fs.PathError] with the type of the file.
func OpenFile(path string) (*os.File, error) {
	if !inherited(path) {
		if err := readable(path); err != nil {
			return nil, err
		}
	}
	return os.Open(path)
}

// ReadFile reads a file by [OpenFile]. A file that is longer than [MaxBytes] is an error.
func ReadFile(path string) ([]byte, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(path, f)
}

// ReadAll reads an open file, with its name for errors. More than [MaxBytes] is an error.
func ReadAll(name string, r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err == nil && len(data) > MaxBytes {
		err = &fs.PathError{Op: "read", Path: name, Err: errTooLong}
	}
	return data, err
}

var errTooLong = fmt.Errorf("the file is longer than the limit of %d bytes", MaxBytes)

// inherited reports whether a path is that of a file that was open when the process started. Opening it does not block.
func inherited(path string) bool {
	return path == "/dev/stdin" || strings.HasPrefix(path, "/dev/fd/")
}

// readable returns nil for a regular file, and for a folder, since reading that fails anyway.
func readable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	kind := "no regular file"
	switch mode := info.Mode(); {
	case mode.IsRegular(), mode.IsDir():
		return nil
	case mode&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	}
	return &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("it is %s; name a regular file, or /dev/stdin", kind)}
}

// ErrTooMany is the error of [Within] for a folder with too much in it, such as the root of a file system.
var ErrTooMany = errors.New("it has more than 200,000 files and folders in it; name a smaller folder, or the files")

const maxWithin = 200_000

var errLinkedFolder = errors.New("it is a symbolic link to a folder, which is not followed; name the folder itself")

// Within lists the files of a folder and its subfolders with wanted names, in the order of their paths. With a path it
// yields the reason why the file cannot be read, or nil: it is not a regular file, its link is broken, or it is a
// folder that cannot be listed. A symbolic link to a file counts as a file; a link to a folder is not followed, so that
// there are no cycles. It ends with [ErrTooMany] and the path of the folder after 200,000 files and folders of any name.
func Within(dir string, wanted func(path string) bool) iter.Seq2[string, error] {
	return within(dir, maxWithin, wanted)
}

func within(dir string, most int, wanted func(path string) bool) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		met := 0
		_ = filepath.WalkDir(dir+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
			more := true
			met++
			switch {
			case met > most:
				yield(filepath.Clean(dir), ErrTooMany)
				return fs.SkipAll
			case err != nil:
				more = yield(filepath.Clean(path), err)
			case d.Type()&fs.ModeSymlink != 0:
				more = link(path, wanted, yield)
			case !d.IsDir() && wanted(path):
				more = yield(path, readable(path))
			}
			if !more {
				return fs.SkipAll
			}
			return nil // the rest is still listed
		})
	}
}

// link yields a symbolic link if it leads to a folder or its name is wanted.
func link(path string, wanted func(path string) bool, yield func(string, error) bool) bool {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return yield(path, &fs.PathError{Op: "read", Path: path, Err: errLinkedFolder})
	case !wanted(path):
		return true
	}
	return yield(path, readable(path))
}
