module github.com/redlatch/redlatch/redlatchvalkey

go 1.25.0

require (
	github.com/redlatch/redlatch v0.0.0
	github.com/valkey-io/valkey-go v1.0.79
)

require golang.org/x/sys v0.47.0 // indirect
