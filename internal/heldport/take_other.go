//go:build !linux

package heldport

import (
	"context"
	"net"
)

// take finds a free port, which it cannot keep.
func take() (port int, letGo func(), err error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, nil, err
	}
	at, _ := l.Addr().(*net.TCPAddr)
	return at.Port, func() {}, l.Close()
}
