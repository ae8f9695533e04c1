// What the tests require that make oldest and make oldest-go run: with the oldest go-redis, and the oldest Go that a program may have.
module github.com/redlatch/redlatch/tests

go 1.25.0

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/redis/go-redis/v9 v9.19.0
	github.com/redis/rueidis v1.0.79
	github.com/redlatch/redlatch v0.0.0
	github.com/redlatch/redlatch/drivertest v0.0.0
	github.com/redlatch/redlatch/redlatchgoredis v0.0.0
	github.com/redlatch/redlatch/redlatchrueidis v0.0.0
	github.com/redlatch/redlatch/redlatchvalkey v0.0.0
	github.com/valkey-io/valkey-go v1.0.79
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace (
	github.com/redlatch/redlatch => ../
	github.com/redlatch/redlatch/drivertest => ../drivertest
	github.com/redlatch/redlatch/redlatchgoredis => ../redlatchgoredis
	github.com/redlatch/redlatch/redlatchrueidis => ../redlatchrueidis
	github.com/redlatch/redlatch/redlatchvalkey => ../redlatchvalkey
)
