package script

// Closest returns the known word that a person most likely meant by word, or "" if none is near enough to be worth asking.
func Closest(word string, known []string) string { return closest(word, known) }
