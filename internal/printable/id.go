package printable

import "fmt"

// ID is an id in an error: its text, or "(zero id)" where a variable was never set, which would leave a gap.
func ID(id fmt.Stringer) string {
	if text := id.String(); text != "" {
		return text
	}
	return "(zero id)"
}
