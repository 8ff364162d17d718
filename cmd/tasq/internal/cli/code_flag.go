package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

// codeFlags declares the flags --code and --no-code, which set the code of a filter: "" is none, nil any.
func codeFlags(cmd *cobra.Command, code **string, of, none string) {
	f := cmd.Flags()
	f.Var(codeValue{code}, "code", of)
	f.BoolFunc("no-code", none, func(string) error {
		*code = new("")
		return nil
	})
	oneOf(cmd, "code", "no-code")
}

// codeValue is the value of --code. It is not empty, since the variable of a script may be unset.
type codeValue struct{ to **string }

func (v codeValue) Set(text string) error {
	if text == "" {
		return errors.New("must not be empty; --no-code selects those without a code")
	}
	*v.to = &text
	return nil
}

func (v codeValue) String() string { return "" }

func (v codeValue) Type() string { return "code" }

// oneOf refuses a command that has both flags.
func oneOf(cmd *cobra.Command, one, other string) {
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if before != nil {
			if err := before(cmd, args); err != nil {
				return err
			}
		}
		if cmd.Flags().Changed(one) && cmd.Flags().Changed(other) {
			return usagef("--%s and --%s cannot be combined: give one of them", one, other)
		}
		return nil
	}
}
