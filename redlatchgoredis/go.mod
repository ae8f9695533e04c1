module github.com/redlatch/redlatch/redlatchgoredis

go 1.25.0

require (
	github.com/redis/go-redis/v9 v9.19.0
	github.com/redlatch/redlatch v0.0.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
)
