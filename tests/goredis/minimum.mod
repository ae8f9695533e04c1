// What the tests of this folder require, with the oldest go-redis that the adapter works with; make oldest runs them so, too.
module github.com/redlatch/redlatch/tests

go 1.26.0

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/redis/go-redis/v9 v9.19.0
	github.com/redlatch/redlatch v0.0.0
	github.com/redlatch/redlatch/drivertest v0.0.0
	github.com/redlatch/redlatch/goredis v0.0.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/atomic v1.11.0 // indirect
)

replace (
	github.com/redlatch/redlatch => ..
	github.com/redlatch/redlatch/drivertest => ../drivertest
	github.com/redlatch/redlatch/goredis => ../goredis
)
