// Package steptest runs jobs with durable steps without an engine: in memory, on a clock that moves only when the
// test moves it. Functions written with package step are tested with it in microseconds, years of sleep included.
//
//	job := steptest.New()
//	out := job.Run(ctx, onboarding) // runs until it must wait
//	job.Send("verified", true)
//	job.Advance(24 * time.Hour)
//	out = job.Run(ctx, onboarding)  // from the first line, with its history
//
// [Job.Drive] does the waiting too. A [Job] can also be unkind: [Job.CrashAt] ends the process, so to speak, before
// or after something is recorded, and [Job.Lose] gives the job to another run.
package steptest
