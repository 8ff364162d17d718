package check

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/model"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/pnml"
)

// Entry is a file to check, or a workflow that is in no file.
type Entry struct {
	Name    string
	Def     *net.Definition               // the workflow; nil for a file
	Allowed []net.Code                    // findings that the workflow allows
	Among   bool                          // found in a folder or archive, which may have other files than models
	Open    func() (io.ReadCloser, error) // opens it, once
	Err     error                         // the error of opening it
	Size    int64                         // in bytes, if it is in memory already
}

// endings are the file extensions of models in folders and archives.
var endings = []string{".net", ".txt", ".pnml", ".xml", ".yawl", ".ywl", ".bpmn", ".bpmn20"}

func isModel(name string) bool { return slices.Contains(endings, strings.ToLower(filepath.Ext(name))) }

func isText(name string) bool { return strings.EqualFold(filepath.Ext(name), ".txt") }

func isArchive(name string) bool {
	return strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".tgz") || strings.HasSuffix(name, ".tar")
}

// Files lists the files of an argument: a file itself; for a folder or an archive (.tar, .tar.gz, .tgz) every file with
// the extension of a model, in the order of the names or of the archive. A missing or unreadable file is an entry too.
func Files(arg string) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		info, err := os.Stat(arg)
		switch {
		case err != nil:
			yield(Entry{Name: arg, Err: err})
		case info.IsDir():
			folder(arg, yield)
		case isArchive(arg):
			archive(arg, false, yield)
		default:
			yield(onDisk(arg, false))
		}
	}
}

// Reader returns the entry of an open file. It is read once, and not closed.
func Reader(name string, r io.Reader) Entry {
	return Entry{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(r), nil }}
}

func onDisk(path string, among bool) Entry {
	return Entry{Name: path, Among: among, Open: func() (io.ReadCloser, error) { return model.OpenFile(path) }}
}

func folder(dir string, yield func(Entry) bool) {
	wanted := func(path string) bool { return isModel(path) || isArchive(path) }
	for path, err := range model.Within(dir, wanted) {
		var more bool
		switch {
		case err != nil:
			more = yield(Entry{Name: path, Among: !errors.Is(err, model.ErrTooMany), Err: err})
		case isArchive(path):
			more = archive(path, true, yield)
		default:
			more = yield(onDisk(path, true))
		}
		if !more {
			return
		}
	}
}

// A decompressed archive may be far larger than its file.
const (
	maxEntries = 200_000
	maxArchive = 4 << 30 // bytes in total
)

func archive(name string, among bool, yield func(Entry) bool) bool {
	f, err := model.OpenFile(name)
	if err != nil {
		return yield(Entry{Name: name, Among: among, Err: err})
	}
	defer f.Close()
	files, all, err := unpack(name, f)
	if err != nil {
		return yield(broken(name, err))
	}
	for n := 0; ; n++ {
		h, err := files.Next()
		switch {
		case errors.Is(err, io.EOF):
			return true
		case all.N <= 0 || n >= maxEntries:
			return yield(broken(name, fmt.Errorf("it holds more than %d files or %d bytes", maxEntries, int64(maxArchive))))
		case err != nil:
			return yield(broken(name, err))
		}
		if h.Typeflag != tar.TypeReg || !isModel(h.Name) || path.Base(h.Name)[0] == '.' {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(files, model.MaxBytes+1))
		if err != nil {
			return yield(broken(name, err))
		}
		e := Reader(name+"/"+path.Clean(h.Name), bytes.NewReader(data))
		e.Among, e.Size = true, int64(len(data))
		if !yield(e) {
			return false
		}
	}
}

// unpack returns a reader for an archive, which is compressed unless its name ends in .tar. The second result limits
// the decompressed size.
func unpack(name string, r io.Reader) (*tar.Reader, *io.LimitedReader, error) {
	if !strings.HasSuffix(name, ".tar") {
		unzipped, err := gzip.NewReader(r)
		if err != nil {
			return nil, nil, err
		}
		r = unzipped
	}
	all := &io.LimitedReader{R: r, N: maxArchive}
	return tar.NewReader(all), all, nil
}

func broken(name string, err error) Entry {
	text := "the archive cannot be read: " + err.Error()
	return Entry{Name: name, Err: &model.Error{File: name, Code: pnml.Malformed, Text: text}}
}

// check reads and verifies the file of an entry.
func (e Entry) check(o Options) *File {
	switch {
	case e.Err != nil:
		return &File{Name: e.Name, Err: e.Err, Passed: e.Among}
	case e.Def != nil:
		return Definition(e.Def, e.Allowed, o)
	}
	r, err := e.Open()
	if err != nil {
		return &File{Name: e.Name, Err: err, Passed: e.Among}
	}
	defer r.Close()
	f := Read(e.Name, r, o)
	f.Passed = e.Among && e.passes(f.Err)
	return f
}

// passes reports whether a file of a folder or archive, with this error, is not a model: it has another format, it is
// text that is not a scenario (a licence, a list, notes), or the file system refuses it.
func (e Entry) passes(err error) bool {
	var refusal *model.Error
	var syntax scenario.SyntaxErrors
	var system *fs.PathError
	switch {
	case errors.As(err, &refusal):
		return refusal.Code == pnml.WrongFormat || isText(e.Name) && (refusal.Code == pnml.Empty || refusal.Code == pnml.TooLarge)
	case errors.As(err, &syntax):
		return isText(e.Name)
	}
	return errors.As(err, &system)
}

// inline is the size in bytes from which a file is checked before the next one is read, so that only small files are
// buffered in memory.
const inline = 4 << 20

// Run checks files, several concurrently, and calls the function for each in order. It stops when the context ends, or
// at the first error of the function; searches in progress then continue in the background until their budget is
// exhausted.
func Run(ctx context.Context, entries iter.Seq[Entry], o Options, each func(*File) error) error {
	queue := make(chan chan *File, 2*runtime.GOMAXPROCS(0))
	quit := make(chan struct{})
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	go func() {
		defer close(queue)
		for e := range entries {
			done := make(chan *File, 1)
			select {
			case queue <- done:
			case <-quit:
				return
			}
			slots <- struct{}{}
			work := func() {
				done <- e.check(o)
				<-slots
			}
			if e.Size >= inline {
				work()
			} else {
				go work()
			}
		}
	}()
	defer close(quit)
	for done := range queue {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case f := <-done:
			if err := each(f); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}
