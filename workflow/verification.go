package workflow

import (
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// Verification is the result of verifying a definition's net, see verify.Net, with the findings that its author
// allows or silences. The zero value means that it was not verified. The nets of composite tasks are verified
// separately.
type Verification struct {
	Verdict  verify.Verdict   // of the net, without regard to Allowed
	Allowed  []net.Code       // codes of findings that do not prevent Build; sorted
	Silenced []net.Code       // codes of warnings that are omitted; sorted
	Findings []verify.Finding // those that are allowed, or leave the net weakly sound
	Warnings []verify.Finding // probable mistakes, without the silenced ones
}
