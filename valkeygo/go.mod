module github.com/redlatch/redlatch/valkeygo

go 1.25.0

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/redlatch/redlatch v0.0.0
	github.com/valkey-io/valkey-go v1.0.79
	go.uber.org/goleak v1.3.0
)

require (
	github.com/yuin/gopher-lua v1.1.1 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace github.com/redlatch/redlatch => ..
