package workflow

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/tasq-dev/tasq/domain"
	"github.com/tasq-dev/tasq/internal/printable"
	"github.com/tasq-dev/tasq/workitem"
)

// Identity is the business key and the labels of a case, by which it can be found. The zero value has none.
type Identity struct {
	Key    string            // business key, such as the number of an order; "" for none
	Labels map[string]string // values by name; a name with the value "" is no label
}

// The bounds of an identity. Names of labels match [A-Za-z_][A-Za-z0-9_.-]*.
const (
	MaxKey    = 200 // bytes of a business key, of the name and of the value of a label
	MaxLabels = 32  // of one case
)

var labelName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// Over returns the identity with values of below where i has none. Labels without a value are omitted.
func (i Identity) Over(below Identity) Identity {
	all := Identity{Key: i.Key}
	if all.Key == "" {
		all.Key = below.Key
	}
	if len(i.Labels)+len(below.Labels) == 0 {
		return all
	}
	all.Labels = make(map[string]string)
	maps.Copy(all.Labels, below.Labels)
	maps.Copy(all.Labels, i.Labels)
	maps.DeleteFunc(all.Labels, func(_, value string) bool { return value == "" })
	if len(all.Labels) == 0 {
		all.Labels = nil
	}
	return all
}

// Check returns an error if the key or a label is too long or cannot be stored, or if there are too many labels. The
// error is a *domain.InvalidError.
func (i Identity) Check() error {
	if err := checkShort("business key", i.Key); err != nil {
		return err
	}
	if len(i.Labels) > MaxLabels {
		return invalidIdentity(fmt.Errorf("a case has at most %d labels, and this one would have %d", MaxLabels, len(i.Labels)))
	}
	if len(i.Labels) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(i.Labels)) {
		if err := CheckLabelName(name); err != nil {
			return invalidIdentity(err)
		}
		if err := checkShort("label "+name, i.Labels[name]); err != nil {
			return err
		}
	}
	return nil
}

// CheckLabelName returns an error if a text cannot be the name of a label.
func CheckLabelName(name string) error {
	if len(name) > MaxKey || !labelName.MatchString(name) {
		return fmt.Errorf("%.60q cannot be the name of a label: use letters, digits, '_', '.' and '-', up to %d of them", name, MaxKey)
	}
	return nil
}

func checkShort(what, text string) error {
	if len(text) > MaxKey {
		return invalidIdentity(fmt.Errorf("the %s has %d bytes, and at most %d are kept", what, len(text), MaxKey))
	}
	return CheckText(what, text)
}

func invalidIdentity(err error) error {
	return &domain.InvalidError{Type: "workflow.Identity", Err: err}
}

// BusinessKey sets the business key of a new case, instead of the one that builder.BusinessKey computes. It is not the idempotency
// key of the command, see Key.
func BusinessKey(key string) Option {
	return OptionFunc(func(c *Command) error {
		if key == "" {
			return fmt.Errorf("%w: BusinessKey is empty: give a key, or leave it out", ErrBadCommand)
		}
		c.BusinessKey = key
		return nil
	})
}

// Label sets a label of a new case, instead of the value that builder.Label computes. With an empty value the case does not have the
// label.
func Label(name, value string) Option {
	return OptionFunc(func(c *Command) error {
		if err := CheckLabelName(name); err != nil {
			return invalidIdentity(err)
		}
		labels := maps.Clone(c.Labels)
		if labels == nil {
			labels = make(map[string]string, 1)
		}
		labels[name] = value
		c.Labels = labels
		return nil
	})
}

// ErrKeyTaken says that another case holds the business key. The error is a *KeyTakenError.
var ErrKeyTaken = errors.New("the business key is taken")

// KeyTakenError says which case holds a unique business key: an active or completed root case of the same workflow.
type KeyTakenError struct {
	Workflow string
	Key      string
	Case     workitem.CaseID // that holds the key
}

// Error names both parties and says what to do.
func (e *KeyTakenError) Error() string {
	return fmt.Sprintf("%v: case %s of %s has the key %q already; use that case, give another key, or cancel or remove it",
		ErrKeyTaken, e.Case, e.Workflow, e.Key)
}

// Unwrap returns [ErrKeyTaken].
func (e *KeyTakenError) Unwrap() error { return ErrKeyTaken }

// ErrThrottled says that a start exceeds its Throttle. The error is a *ThrottledError.
var ErrThrottled = errors.New("the start is throttled")

// ThrottledError is the error of a start that exceeds a Throttle. It says when the next start is possible.
type ThrottledError struct {
	Workflow string
	Key      string
	Throttle int
	Window   time.Duration
	Case     workitem.CaseID // the case that was started last
	Again    time.Time       // when the next start is allowed, if no other one precedes it
	Wait     time.Duration   // from the rejected start until Again
}

// Error describes the throttle, and says what to do.
func (e *ThrottledError) Error() string {
	return fmt.Sprintf("%v: %s with the key %q may start %d times in %s, and case %s is the last of them; start it in %s, at %s, or later",
		ErrThrottled, e.Workflow, e.Key, e.Throttle, e.Window, e.Case, printable.Took(e.Wait), printable.Time(e.Again))
}

// Unwrap returns [ErrThrottled].
func (e *ThrottledError) Unwrap() error { return ErrThrottled }
