package chat

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// question is the body of a request.
type question struct {
	Model    string    `json:"model"`
	Messages []message `json:"messages"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Refusal string `json:"refusal,omitempty"`
}

// answer is the body of a reply, as far as it is read. Error is set by gateways that report the failure of the server
// behind them under a status of 200.
type answer struct {
	Model   string          `json:"model"`
	Error   json.RawMessage `json:"error"`
	Usage   Usage           `json:"usage"`
	Choices []struct {
		Message message `json:"message"`
		Finish  string  `json:"finish_reason"`
	} `json:"choices"`
}

// decode reads a successful reply. All of its failures but a refusal are temporary: a proxy's error page, a server
// that is just starting and a model that stumbled look exactly like this.
func decode(status int, body []byte) (Reply, *Error) {
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		e := &Error{Status: status, Code: CodeJSON, Temporary: true, Err: err}
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			e.Code = CodeShape
		}
		e.Message = fmt.Sprintf("%v, in a reply of %d bytes", err, len(body))
		return Reply{}, e
	}
	if len(a.Error) > 0 && string(a.Error) != "null" {
		code, text := complaint(body)
		// The number is the status of the server behind the gateway. Where there is none, it is not known whose fault it is.
		behind, err := strconv.Atoi(code)
		temporary := err != nil && code != codeNoQuota || passing(behind, code)
		return Reply{}, &Error{Status: status, Code: code, Message: text, Temporary: temporary}
	}
	if len(a.Choices) == 0 {
		return Reply{}, &Error{Status: status, Code: CodeEmpty, Message: "the reply has no choices", Temporary: true}
	}
	first := a.Choices[0]
	switch {
	case first.Message.Content != "":
		return Reply{Text: first.Message.Content, Model: a.Model, Finish: first.Finish, Usage: a.Usage}, nil
	case first.Message.Refusal != "":
		return Reply{}, &Error{Status: status, Code: CodeRefusal, Message: first.Message.Refusal}
	}
	return Reply{}, &Error{Status: status, Code: CodeEmpty, Message: "the reply has no words", Temporary: true}
}

// complaint finds the code and the explanation in the body of a refusal. Servers differ here more than anywhere else:
//
//	{"error": {"message": "slow down", "type": "requests", "code": "rate_limit_exceeded"}}
//	{"error": "model not found"}
//	{"message": "bad request", "type": "invalid_request_error", "code": 400}
//	<html>502 Bad Gateway</html>
//
// A code wins over a type. What is not understood is the explanation itself.
func complaint(body []byte) (code, text string) {
	var outer struct {
		Error json.RawMessage `json:"error"`
		details
	}
	if json.Unmarshal(body, &outer) != nil {
		return "", string(body)
	}
	d := outer.details
	if len(outer.Error) > 0 {
		var plain string
		if json.Unmarshal(outer.Error, &plain) == nil {
			d.Message = cmp.Or(loose(plain), d.Message)
		} else if json.Unmarshal(outer.Error, &d) != nil {
			d = details{}
		}
	}
	return string(cmp.Or(d.Code, d.Type)), string(cmp.Or(d.Message, loose(body)))
}

type details struct {
	Message loose `json:"message"`
	Type    loose `json:"type"`
	Code    loose `json:"code"`
}

// loose is a string that may be written as a number: a code is "rate_limited" here and 429 there. Anything else than
// these two reads as "".
type loose string

// UnmarshalJSON reads a string or a number.
func (l *loose) UnmarshalJSON(data []byte) error {
	var s string
	var n json.Number
	switch {
	case json.Unmarshal(data, &s) == nil:
		*l = loose(s)
	case json.Unmarshal(data, &n) == nil:
		*l = loose(n)
	default:
		*l = ""
	}
	return nil
}

// maxMessage limits an explanation: error pages are long, and errors are kept with the work item.
const maxMessage = 300

// oneLine folds white space and shortens a text that is too long.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s[:min(len(s), 4*maxMessage)]), " ")
	if len(s) > maxMessage {
		s = s[:maxMessage-len("...")] + "..."
	}
	return strings.ToValidUTF8(s, "")
}
