package model_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tasq-dev/tasq/cmd/tasq/internal/model"
	"github.com/tasq-dev/tasq/internal/scenario"
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/pnml"
)

// archive opens an archive of models from elsewhere, which are no part of this repository: in the folder that the
// environment variable TASQ_MODELS names, or in shared/models beside a folder above. The test is skipped without it.
func archive(t *testing.T, name string) *tar.Reader {
	t.Helper()
	paths := []string{filepath.Join(os.Getenv("TASQ_MODELS"), name)}
	here, err := os.Getwd()
	require.NoError(t, err)
	for dir := here; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		paths = append(paths, filepath.Join(dir, "shared", "models", name))
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		unzipped, err := gzip.NewReader(f)
		require.NoError(t, err)
		return tar.NewReader(unzipped)
	}
	t.Skipf("%s is absent: set TASQ_MODELS to the folder that holds it, or put it into ../shared/models", name)
	return nil
}

// The format of every published model is recognised by its content, whatever its name, and what is read comes back the
// same after it was written in net notation and as PNML.
func TestPublishedModelsComeBack(t *testing.T) {
	for name, want := range map[string]struct {
		format model.Format
		files  int
	}{"ibm-a-b1.tar.gz": {model.PNML, 570}, "yawl.tar.gz": {model.YAWL, 27}, "bpmn.tar.gz": {model.BPMN, 151}} {
		t.Run(want.format.String(), func(t *testing.T) {
			files := 0
			for a := archive(t, name); ; {
				h, err := a.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
				f, err := model.Read("model", a)
				if h.Typeflag != tar.TypeReg || err != nil {
					continue // a folder, a licence, a table of verdicts
				}
				files++
				require.Equal(t, want.format, f.Format, h.Name)
				comeBack(t, h.Name, f.Definitions())
			}
			require.Equal(t, want.files, files)
		})
	}
}

func comeBack(t *testing.T, where string, ds []*net.Definition) {
	t.Helper()
	text, err := scenario.Encode(ds...)
	require.NoError(t, err, where)
	back, err := model.Read("back.net", bytes.NewReader([]byte(text)))
	require.NoError(t, err, where)
	require.Equal(t, placeless(ds), placeless(back.Definitions()), where)

	var xml bytes.Buffer
	require.NoError(t, pnml.Encode(&xml, ds...), where)
	back, err = model.Read("back.pnml", &xml)
	require.NoError(t, err, where)
	require.Equal(t, placeless(ds), placeless(back.Definitions()), where)
}

// placeless copies definitions without positions, which are those of the file.
func placeless(ds []*net.Definition) []net.Definition {
	all := make([]net.Definition, len(ds))
	for i, d := range ds {
		all[i].Name = d.Name
		for _, c := range d.Conditions {
			c.Pos = net.Pos{}
			all[i].Conditions = append(all[i].Conditions, c)
		}
		for _, t := range d.Tasks {
			t.Pos = net.Pos{}
			all[i].Tasks = append(all[i].Tasks, t)
		}
		for _, f := range d.Flows {
			f.Pos = net.Pos{}
			all[i].Flows = append(all[i].Flows, f)
		}
	}
	return all
}
