//go:build !linux

package heldport

import (
	"context"
	"net"
	"strconv"
)

// take finds that a port, or any if want is 0, is free. It cannot keep it.
func take(want int) (port int, letGo func(), err error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", Addr(strconv.Itoa(want)))
	if err != nil {
		return 0, nil, err
	}
	at, _ := l.Addr().(*net.TCPAddr)
	return at.Port, func() {}, l.Close()
}
