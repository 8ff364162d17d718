// Package steptest runs functions with durable steps without an engine: in memory, on a clock that moves only when the
// test moves it. It tests functions written with package step in microseconds, including years of sleep.
//
//	job := steptest.New()
//	out := job.Run(ctx, onboarding) // runs until it has to wait
//	job.Send("verified", true)
//	job.Advance(24 * time.Hour)
//	out = job.Run(ctx, onboarding)  // from the first line, with its history
//
// [Job.Drive] does the waiting, too. A [Job] can also inject faults: [Job.CrashAt] simulates a crash before
// or after something is recorded, and [Job.Lose] takes the job away from its run.
package steptest
