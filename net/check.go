package net

// Check returns every well-formedness problem of the definition, sorted by code and subject.
func (d *Definition) Check() []Problem { return nil }
