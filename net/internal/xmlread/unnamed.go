package xmlread

// Unnamed collects the elements of a net whose names were made by a reader: those that the file gives no name, and those
// that the file does not have. The zero value is ready for use.
type Unnamed struct {
	added, bare []string
	some        bool // an element of the file has a name
}

// Add notes an element that the reader adds.
func (u *Unnamed) Add(name string) { u.added = append(u.added, name) }

// Element notes an element of the file, with its name in the net and what the file calls it, "" for nothing.
func (u *Unnamed) Element(name, label string) {
	if label == "" {
		u.bare = append(u.bare, name)
		return
	}
	u.some = true
}

// Names returns the names in the net. If the file names no element at all, its ids serve as names, and only what was
// added is unnamed.
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
