package heldport

import (
	"os"
	"syscall"
)

// take binds a socket that never listens. Two sockets that allow their address
// to be reused may be bound to one port as long as neither listens, and then one
// of them may: servers allow it, so that they can be started again at once. Who
// asks for any port, to listen or to connect, is not given one that is bound.
// A want of 0 is any port. The socket allows it only once it is bound: a port that
// somebody else holds, for a server that is down, is refused.
func take(want int) (port int, letGo func(), err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, os.NewSyscallError("socket", err)
	}
	letGo = func() { _ = syscall.Close(fd) }
	if err = os.NewSyscallError("bind", syscall.Bind(fd, &syscall.SockaddrInet4{Port: want, Addr: [4]byte{127, 0, 0, 1}})); err == nil {
		err = os.NewSyscallError("setsockopt", syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1))
	}
	if err != nil {
		letGo()
		return 0, nil, err
	}
	at, err := syscall.Getsockname(fd)
	bound, ok := at.(*syscall.SockaddrInet4)
	if err != nil || !ok {
		letGo()
		return 0, nil, os.NewSyscallError("getsockname", err)
	}
	return bound.Port, letGo, nil
}
