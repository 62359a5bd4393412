package consensus

import (
	"fmt"

	cmtlog "github.com/cometbft/cometbft/libs/log"
)

// failureLogger hears that consensus has ended. CometBFT says so in its log alone, and the process would go on without it.
type failureLogger struct {
	cmtlog.Logger
	failed chan<- error
}

// consensusFailure is what CometBFT logs then, with the reason under "err".
const consensusFailure = "CONSENSUS FAILURE!!!"

// Error implements cmtlog.Logger.
func (l failureLogger) Error(msg string, keyvals ...any) {
	if msg == consensusFailure && len(l.failed) > 0 {
		return // the reason is told already
	}
	l.Logger.Error(msg, keyvals...)
	if msg != consensusFailure {
		return
	}
	var why any = "its log says why"
	for i := 0; i+1 < len(keyvals); i += 2 {
		if keyvals[i] == "err" {
			why = keyvals[i+1]
		}
	}
	select {
	case l.failed <- fmt.Errorf("consensus has ended: %v: see to that, then start the node again, which goes on where it was", why):
	default: // the first reason is told
	}
}

// With implements cmtlog.Logger.
func (l failureLogger) With(keyvals ...any) cmtlog.Logger {
	return failureLogger{l.Logger.With(keyvals...), l.failed}
}
