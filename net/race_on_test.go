//go:build race

package net

// underRace: the race detector makes a sync.Pool forget on purpose.
const underRace = true
