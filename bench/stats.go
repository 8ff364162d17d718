package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// metrics are the figures of one run, by name.
type metrics map[string]float64

// sample is one figure over all rounds.
type sample []float64

func (s sample) median() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// String is the median with the range: "4.2 [3.9-5.0]".
func (s sample) String() string {
	switch len(s) {
	case 0:
		return "-"
	case 1:
		return short(s[0])
	}
	return fmt.Sprintf("%s [%s-%s]", short(s.median()), short(slices.Min(s)), short(slices.Max(s)))
}

// over is the ratio to another figure, round by round: what two runs of one round share of the machine's noise
// cancels out.
func (s sample) over(o sample) sample {
	var r sample
	for i := range min(len(s), len(o)) {
		if o[i] != 0 {
			r = append(r, s[i]/o[i])
		}
	}
	return r
}

// short prints three significant digits, and no fraction from a hundred on.
func short(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "-"
	case a == 0:
		return "0"
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

// percentile of a sorted list.
func percentile[T any](sorted []T, p float64) T {
	var none T
	if len(sorted) == 0 {
		return none
	}
	return sorted[int(float64(len(sorted)-1)*p/100)]
}

func (s sample) times(factor float64) sample {
	var r sample
	for _, v := range s {
		r = append(r, v*factor)
	}
	return r
}
