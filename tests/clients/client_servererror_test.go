package clients

import (
	"errors"
	"strings"
	"testing"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

// Redis 7 answers with what a command raised inside a script, Redis 6 and
// miniredis wrap it. What became of the script is the same.
func TestServerErrorFindsWhatWasRaised(t *testing.T) {
	type want struct {
		outcome   driver.Outcome
		code      string
		retryable bool
	}
	const (
		before7   = "ERR Error running script (call to f_ff9c18634832b0b4115a19b4de5f4788a7cfbd4e): @user_script:30: "
		itself    = before7 + "@user_script: 30: -"
		elsewhere = "ERR Script attempted to access a non local key in a cluster node"
		full      = "OOM command not allowed when used memory > 'maxmemory'."
	)
	for text, want := range map[string]want{
		full:          {driver.Refused, "OOM", true},
		itself + full: {driver.Refused, "OOM", true},
		full + " script: 5d41402abc4b2a76b9719d911017c592, on @user_script:1.": {driver.Refused, "OOM", true},

		itself + "MISCONF Redis is configured to save RDB snapshots":                      {driver.Refused, "MISCONF", true},
		itself + "NOREPLICAS Not enough good replicas to write.":                          {driver.Refused, "NOREPLICAS", true},
		itself + "READONLY You can't write against a read only replica.":                  {driver.NotExecuted, "READONLY", true},
		before7 + "WRONGTYPE Operation against a key holding the wrong kind of value":     {driver.Refused, "WRONGTYPE", false},
		before7 + "user_script:1: attempt to index a nil value":                           {driver.Refused, "ERR", false},
		"ERR Error compiling script (new function): :7: WRONGTYPE Operation against":      {driver.Refused, "WRONGTYPE", false},
		"ERR Error compiling script (new function): user_script:1: '=' expected near no":  {driver.Refused, "ERR", false},
		"MOVED 3999 127.0.0.1:6381":                                                       {driver.NotExecuted, "MOVED", true},
		"ASK 3999 127.0.0.1:6381":                                                         {driver.NotExecuted, "ASK", true},
		"TRYAGAIN Multiple keys request during rehashing of slot":                         {driver.NotExecuted, "TRYAGAIN", true},
		"CLUSTERDOWN Hash slot not served":                                                {driver.NotExecuted, "CLUSTERDOWN", true},
		"LOADING Redis is loading the dataset in memory":                                  {driver.NotExecuted, "LOADING", true},
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'": {driver.NotExecuted, "MASTERDOWN", true},
		"BUSY Redis is busy running a script":                                             {driver.NotExecuted, "BUSY", true},
		"NOAUTH Authentication required.":                                                 {driver.NotExecuted, "NOAUTH", false},
		"ERR max number of clients reached":                                               {driver.NotExecuted, "ERR", true},

		// It may have written before it came to a key of a slot that moves.
		elsewhere + " script: 1f, on @user_script:9.":                                   {driver.Unknown, "ERR", true},
		strings.TrimPrefix(elsewhere, "ERR "):                                           {driver.Unknown, "ERR", true}, // as rueidis has it
		before7 + "@user_script: 9: Lua " + strings.TrimPrefix(elsewhere, "ERR Script"): {driver.Unknown, "ERR", true},
	} {
		err := driver.ServerError(text, errors.New(text))
		if err.Outcome != want.outcome || err.Code != want.code || redlatch.IsRetryable(err) != want.retryable {
			t.Errorf("%s:\n%v with code %s, retryable: %v; want %v", text, err.Outcome, err.Code, redlatch.IsRetryable(err), want)
		}
	}
}
