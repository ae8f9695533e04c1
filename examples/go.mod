module github.com/redlatch/redlatch/examples

go 1.26.0

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/ncruces/go-sqlite3 v0.35.5
	github.com/redlatch/redlatch v0.0.0
	github.com/redlatch/redlatch/redlatchgoredis v0.0.0
	golang.org/x/sync v0.24.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/ncruces/go-sqlite3-wasm/v6 v6.2.35304 // indirect
	github.com/ncruces/julianday v1.0.0 // indirect
	github.com/redis/go-redis/v9 v9.23.0 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace (
	github.com/redlatch/redlatch => ..
	github.com/redlatch/redlatch/redlatchgoredis => ../redlatchgoredis
)
