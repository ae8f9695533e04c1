package redlatch_test

import (
	"fmt"

	"github.com/redlatch/redlatch"
)

// Java: RMap<String, String> accounts = redisson.getMap("accounts", StringCodec.INSTANCE);
// accounts.getLock("42").lock();
func ExampleEntry() {
	name := redlatch.Entry{Object: "accounts", Key: "42"}.Lock()
	fmt.Println(name) // for client.Lock
	// Output: {accounts}:RE0IojEvPTY8Dofe3IkBNA:lock
}
