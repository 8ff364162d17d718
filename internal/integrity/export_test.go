package integrity

// Looked is how often a check compared something with its case, item or steps after an entry.
func (r Report) Looked() int64 { return r.looked }
