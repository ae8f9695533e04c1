module github.com/redlatch/redlatch/examples

go 1.26.0

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/ncruces/go-sqlite3 v0.35.5
	github.com/prometheus/client_golang v1.24.1
	github.com/redlatch/redlatch v0.0.0
	github.com/redlatch/redlatch/redlatchgoredis v0.0.0
	github.com/redlatch/redlatch/redlatchprom v0.0.0
	github.com/redlatch/redlatch/redlatchtest v0.0.0
	golang.org/x/sync v0.24.0
)

require (
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/ncruces/go-sqlite3-wasm/v6 v6.2.35304 // indirect
	github.com/ncruces/julianday v1.0.0 // indirect
	github.com/prometheus/client_model v0.6.2 // indirect
	github.com/prometheus/common v0.70.1 // indirect
	github.com/prometheus/procfs v0.21.1 // indirect
	github.com/redis/go-redis/v9 v9.23.0 // indirect
	github.com/redis/rueidis v1.0.79 // indirect
	github.com/redlatch/redlatch/redlatchrueidis v0.0.0 // indirect
	github.com/yuin/gopher-lua v1.1.1 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)

replace (
	github.com/redlatch/redlatch => ..
	github.com/redlatch/redlatch/redlatchgoredis => ../redlatchgoredis
	github.com/redlatch/redlatch/redlatchprom => ../redlatchprom
	github.com/redlatch/redlatch/redlatchrueidis => ../redlatchrueidis
	github.com/redlatch/redlatch/redlatchtest => ../redlatchtest
)
