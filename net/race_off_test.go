//go:build !race

package net

const underRace = false
