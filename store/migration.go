package store

// Migration is a step of the schema of a database.
type Migration struct {
	Version int    `json:"version"` // from 1, without a gap
	Name    string `json:"name"`
}

// OlderError reports that the schema of a database lacks migrations. It wraps [ErrOlder].
type OlderError struct {
	Pending []Migration // those that are missing, in their order
}

// Error returns the text of [ErrOlder]; the store that returns the error adds the name of the database.
func (e *OlderError) Error() string { return ErrOlder.Error() }

// Unwrap returns [ErrOlder].
func (e *OlderError) Unwrap() error { return ErrOlder }
