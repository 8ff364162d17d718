package check

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/tasq-dev/tasq/internal/printable"
)

// Verdicts is a list of published verdicts to compare with, line by line.
type Verdicts struct {
	name string
	list []published
	at   map[string][]int // by the last element of the path
}

// published is one line of the list.
type published struct {
	line  int
	file  string
	sound bool
	ours  *Verdict // nil until the file was checked
	where string   // path of the checked file
}

// maxList limits the size of a list in bytes.
const maxList = 64 << 20

// ReadVerdicts reads a list: CSV with the header "file,sound" and a line for each file, with 1 for sound and 0 for
// unsound. From an archive (.tar, .tar.gz, .tgz) it reads the only .csv file.
func ReadVerdicts(name string) (*Verdicts, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var r io.Reader = f
	if isArchive(name) {
		if r, err = listIn(name, f); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	v := &Verdicts{name: name, at: make(map[string][]int)}
	if err := v.read(io.LimitReader(r, maxList)); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

// listIn finds the list in an archive.
func listIn(name string, r io.Reader) (io.Reader, error) {
	files, _, err := unpack(name, r)
	if err != nil {
		return nil, err
	}
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("there is no .csv in the archive")
		}
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(h.Name, ".csv") {
			return files, nil
		}
	}
}

func (v *Verdicts) read(r io.Reader) error {
	rows := csv.NewReader(r)
	rows.FieldsPerRecord = 2
	head, err := rows.Read()
	if err != nil || head[0] != "file" || head[1] != "sound" {
		return errors.New(`line 1: a list of verdicts begins with the line "file,sound"`)
	}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line, _ := rows.FieldPos(0)
		if row[1] != "0" && row[1] != "1" {
			return fmt.Errorf("line %d: the verdict on %s is %q; expected 1 for sound or 0 for unsound", line, row[0], row[1])
		}
		base := path.Base(row[0])
		v.at[base] = append(v.at[base], len(v.list))
		v.list = append(v.list, published{line: line, file: row[0], sound: row[1] == "1"})
	}
}

// Add compares the verdict on a file, and reports whether the list has the file. A list may name a file by the end of
// its path.
func (v *Verdicts) Add(f *File) bool {
	for _, i := range v.at[path.Base(f.Name)] {
		p := &v.list[i]
		if f.Name == p.file || strings.HasSuffix(f.Name, "/"+p.file) {
			verdict := f.Verdict()
			p.ours, p.where = &verdict, f.Name
			return true
		}
	}
	return false
}

// Write prints the differences and the counts. It reports whether the verdicts agree on every line of the list.
func (v *Verdicts) Write(w io.Writer) (agree bool, err error) {
	sound, unsound, missing := 0, 0, 0 // the number of agreements, and of files that were not checked
	var b strings.Builder
	for _, p := range v.list {
		published := map[bool]string{true: "sound", false: "unsound"}[p.sound]
		switch {
		case p.ours == nil:
			missing++
			fmt.Fprintf(&b, "%s:%d: %s is %s there, and was not checked\n", v.name, p.line, printable.Line(p.file), published)
		case *p.ours == Sound && p.sound:
			sound++
		case (*p.ours == Unsound || *p.ours == WeaklySound) && !p.sound:
			unsound++
		default:
			fmt.Fprintf(&b, "%s:%d: %s is %s there, and %s here\n", v.name, p.line, printable.Line(p.where), published, *p.ours)
		}
	}
	agree = sound+unsound == len(v.list)
	fmt.Fprintf(&b, "%d of %d verdicts agree: %d sound, %d unsound", sound+unsound, len(v.list), sound, unsound)
	if missing > 0 {
		fmt.Fprintf(&b, "; %d not checked", missing)
	}
	if differ := len(v.list) - missing - sound - unsound; differ > 0 {
		fmt.Fprintf(&b, "; %d differ", differ)
	}
	_, err = io.WriteString(w, b.String()+"\n")
	return agree, err
}
