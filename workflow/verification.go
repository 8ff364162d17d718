package workflow

import "github.com/tasq-dev/tasq/net"

// Verification is what is known of the soundness of a definition's net, see [net.Verify], and what its author says of
// that. The zero value says that nobody has looked. The nets of composite tasks are verified on their own.
type Verification struct {
	Verdict  net.Verdict   // of the net, whatever is allowed
	Allowed  []net.Code    // findings with these codes do not keep the definition from being built; sorted
	Silenced []net.Code    // warnings with these codes are not wanted; sorted
	Findings []net.Finding // those that are allowed, or that leave the net weakly sound
	Warnings []net.Finding // what is probably not meant, without the silenced ones
}
