// Package drivertest proves that an implementation of [redlatch.Redis] keeps its
// contract. Call [Run] from a test of the implementation:
//
//	func TestContract(t *testing.T) {
//		drivertest.Run(t, drivertest.Config{
//			New: func(t *testing.T, addr string) redlatch.Redis {
//				client := mylib.New(addr, mylib.Timeout(time.Second))
//				t.Cleanup(client.Close)
//				return mydriver.Use(client)
//			},
//		})
//	}
//
// The tests put a proxy between the driver and the server, which loses replies,
// breaks connections and falls silent, and look at the server to see what was
// executed, and how often. Above all, a script whose reply was lost must have been
// sent once.
package drivertest
