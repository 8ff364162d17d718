package workflow

import (
	"github.com/tasq-dev/tasq/net"
	"github.com/tasq-dev/tasq/net/verify"
)

// Verification is what is known of the soundness of a definition's net, see [verify.Net], and what its author says of
// that. The zero value says that it was not verified. The nets of composite tasks are verified on their own.
type Verification struct {
	Verdict  verify.Verdict   // of the net, whatever is allowed
	Allowed  []net.Code       // findings with these codes do not keep the definition from being built; sorted
	Silenced []net.Code       // warnings with these codes are not wanted; sorted
	Findings []verify.Finding // those that are allowed, or that leave the net weakly sound
	Warnings []verify.Finding // what is probably not meant, without the silenced ones
}
