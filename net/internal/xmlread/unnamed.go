package xmlread

// Unnamed collects the elements of a net whose names a reader generated: those without a name in the file, and those
// that are not in the file. The zero value is ready for use.
type Unnamed struct {
	added, bare []string
	some        bool // an element of the file has a name
}

// Add records an element that the reader adds.
func (u *Unnamed) Add(name string) { u.added = append(u.added, name) }

// Element records an element of the file, with its name in the net and its label in the file, "" for none.
func (u *Unnamed) Element(name, label string) {
	if label == "" {
		u.bare = append(u.bare, name)
		return
	}
	u.some = true
}

// Names returns the generated names in the net. If the file names no element at all, ids count as names, and only those
// of added elements are generated.
func (u *Unnamed) Names() map[string]bool {
	names := make(map[string]bool)
	for _, name := range u.added {
		names[name] = true
	}
	for _, name := range u.bare {
		if u.some {
			names[name] = true
		}
	}
	return names
}
