package main

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatIsSentTogetherIsDelayedTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := link{delay: 2 * time.Millisecond}
		client, from := net.Pipe()
		to, server := net.Pipe()
		go func() {
			l.carry(from, to)
			l.running.Wait()
			_ = to.Close()
		}()
		began := time.Now()
		go func() {
			defer client.Close()
			for range 3 {
				_, _ = client.Write([]byte("x"))
				time.Sleep(time.Millisecond)
			}
		}()
		for n := range 3 {
			if _, err := io.ReadFull(server, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			if after, want := time.Since(began), time.Duration(2+n)*time.Millisecond; after != want {
				t.Errorf("request %d arrives after %v, want %v", n, after, want)
			}
		}
		if n, err := server.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("%d more, %v", n, err)
		}
	})
}

func TestALinkDelaysRequests(t *testing.T) {
	t.Parallel()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		c, err := server.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		buf := make([]byte, 100)
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
			_, _ = c.Write([]byte("+PONG\r\n"))
		}
	}()
	l, err := newLink(server.Addr().String(), addedLatency)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	c, err := net.Dial("tcp", l.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 3 {
		asked := time.Now()
		if _, err := c.Write([]byte("*1\r\n$4\r\nPING\r\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 7)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(asked); took < addedLatency {
			t.Errorf("a round trip of %v", took)
		}
	}
}
