package view

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"

	"github.com/tasq-dev/tasq/net/svg"
)

//go:embed assets
var assetFiles embed.FS

// asset is a file that the pages use.
type asset struct {
	kind string
	data []byte
}

// assets are the files by names that contain a hash of the content, so that browsers can cache them without end.
type assets struct {
	files map[string]asset
	names map[string]string // by the plain name
}

var kinds = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

func loadAssets() assets {
	a := assets{files: make(map[string]asset), names: make(map[string]string)}
	for _, name := range []string{"style.css", "script.js", "icon.svg"} {
		data, err := assetFiles.ReadFile("assets/" + name)
		if err != nil {
			panic(err) // cannot happen: the file is embedded
		}
		if name == "style.css" {
			data = append([]byte(svg.CSS), data...)
		}
		sum := sha256.Sum256(data)
		ending := path.Ext(name)
		hashed := strings.TrimSuffix(name, ending) + "-" + hex.EncodeToString(sum[:6]) + ending
		a.files[hashed], a.names[name] = asset{kinds[ending], data}, hashed
	}
	return a
}

func (a *assets) named(name string) string { return a.names[name] }

func (a *assets) serve(w http.ResponseWriter, r *http.Request) {
	f, ok := a.files[r.PathValue("name")]
	if !ok {
		http.Error(w, "no such file", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	send(w, r, http.StatusOK, f.data)
}
