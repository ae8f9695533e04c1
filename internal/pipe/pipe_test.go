package pipe

import (
	"net"
	"testing"
	"testing/synctest"

	"github.com/redlatch/redlatch/internal/leaktest"
)

// Both ends may send at the same time, and neither reads.
func TestSendingAtTheSameTimeDoesNotBlock(t *testing.T) {
	leaktest.Check(t)
	synctest.Test(t, func(t *testing.T) {
		server, far := net.Pipe()
		client := Buffered(far)
		sent := 0
		go func() {
			for range 100 {
				if _, err := server.Write(make([]byte, 1000)); err != nil {
					return
				}
				sent++
			}
		}()
		synctest.Wait()
		if sent != 100 {
			t.Errorf("the server could send %d of 100 messages before the client read", sent)
		}
		total := 0
		buf := make([]byte, 333)
		for total < 100_000 {
			n, err := client.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			total += n
		}
		_ = client.Close()
		synctest.Wait()
		if _, err := server.Read(buf); err == nil {
			t.Error("the server does not see that the client has closed")
		}
	})
}

// What the server has sent before it closes is still read.
func TestTheLastWordIsHeard(t *testing.T) {
	leaktest.Check(t)
	synctest.Test(t, func(t *testing.T) {
		server, far := net.Pipe()
		client := Buffered(far)
		go func() {
			_, _ = server.Write([]byte("bye"))
			_ = server.Close()
		}()
		synctest.Wait()
		buf := make([]byte, 10)
		if n, err := client.Read(buf); err != nil || string(buf[:n]) != "bye" {
			t.Errorf("%q, %v", buf[:n], err)
		}
		if _, err := client.Read(buf); err == nil {
			t.Error("the client does not see that the server has closed")
		}
		_ = client.Close()
	})
}
