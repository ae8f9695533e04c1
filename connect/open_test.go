package connect

import (
	"reflect"
	"testing"
	"time"

	"github.com/redlatch/redlatch"
)

// What the program says goes before the file, what it does not say is the file's,
// and what belongs together stays together.
func TestTheFileSaysWhatTheProgramDoesNot(t *testing.T) {
	for name, tc := range map[string]struct{ file, own, want redlatch.Config }{
		"the file":    {redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 2}, redlatch.Config{}, redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 2}},
		"the program": {redlatch.Config{Prefix: "a", ServerName: "b"}, redlatch.Config{Prefix: "c"}, redlatch.Config{Prefix: "c", ServerName: "b"}},
		"one of Redisson's": {
			redlatch.Config{Redisson: redlatch.Redisson{PubSub: redlatch.PubSubClassic, FairLockWaitTimeout: time.Minute}},
			redlatch.Config{Redisson: redlatch.Redisson{FairLockWaitTimeout: time.Hour}},
			redlatch.Config{Redisson: redlatch.Redisson{PubSub: redlatch.PubSubClassic, FairLockWaitTimeout: time.Hour}},
		},
		"another policy": {redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 2}, redlatch.Config{Acks: redlatch.AckOff}, redlatch.Config{Acks: redlatch.AckOff}},
		"another number": {redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 2}, redlatch.Config{AckReplicas: 3}, redlatch.Config{Acks: redlatch.AckRequired, AckReplicas: 3}},
	} {
		if got := (Settings{Config: tc.file}).complete(tc.own); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
