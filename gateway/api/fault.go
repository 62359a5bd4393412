package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Fault is why a request is refused. Each API writes it in its own shape.
type Fault struct {
	Status  int
	Code    string        // as OpenAI names it; may be empty
	Param   string        // the field that is wrong, if one is
	Message string        // what is wrong, and what to do
	Retry   time.Duration // after which another try may succeed; 0: none is promised
}

func (f *Fault) Error() string { return f.Message }

// Invalid says that a field has a value that it may not have.
func Invalid(param, format string, args ...any) *Fault {
	return &Fault{Status: http.StatusBadRequest, Code: "invalid_value", Param: param, Message: fmt.Sprintf(format, args...)}
}

// Unsupported says that a field asks for something that this gateway does not do.
func Unsupported(param, format string, args ...any) *Fault {
	return &Fault{Status: http.StatusBadRequest, Code: "unsupported_parameter", Param: param, Message: fmt.Sprintf(format, args...)}
}

// statusGone is what logs and metrics show of a request whose client has left, as nginx does.
const statusGone = 499

// FaultOf returns an error as a fault. What is not known to be the client's business is not told to it.
func FaultOf(err error) *Fault {
	var (
		f    *Fault
		size *http.MaxBytesError
	)
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &size):
		return &Fault{Status: http.StatusRequestEntityTooLarge, Code: "request_too_large", Message: fmt.Sprintf("the body has more than %d bytes: send less", size.Limit)}
	case errors.Is(err, context.Canceled):
		return &Fault{Status: statusGone, Code: "cancelled", Message: "the request was cancelled"}
	case errors.Is(err, context.DeadlineExceeded):
		return &Fault{Status: http.StatusGatewayTimeout, Code: "timeout", Message: "the reply took too long: ask for fewer tokens, or try again"}
	}
	return &Fault{Status: http.StatusInternalServerError, Code: "internal_error", Message: "the reply failed; the gateway's log says why, under the id of this request"}
}

// Headers sets what a fault says in headers.
func (f *Fault) Headers(h http.Header) {
	if f.Retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(f.Retry.Seconds()))))
	}
}
