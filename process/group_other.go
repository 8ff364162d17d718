//go:build !unix

package process

import "os/exec"

// There are no process groups here: the program itself is ended.
func ownGroup(*exec.Cmd) {}

func endGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
