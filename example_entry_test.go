package redlatch_test

import (
	"fmt"

	"github.com/redlatch/redlatch"
)

// In Java redisson.getMap("accounts", StringCodec.INSTANCE).getLock("42") has this name.
func ExampleEntry() {
	name := redlatch.Entry{Object: "accounts", Key: "42"}.Lock()
	fmt.Println(name) // for client.Lock
	// Output: {accounts}:RE0IojEvPTY8Dofe3IkBNA:lock
}
