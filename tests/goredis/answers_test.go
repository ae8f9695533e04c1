package goredis_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/redlatchgoredis"
)

// A talker is a server of Pub/Sub that says what a test wants, over RESP2.
type talker struct {
	// answer returns what a request is answered with: what a server says, for the zero
	// value.
	answer func(conn int64, words []string) string
	slow   time.Duration // how long each write of a client takes
	dials  atomic.Int64
}

// nothing is no answer.
const nothing = "-"

// dial ignores its context, as go-redis does with TLS.
func (s *talker) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	n := s.dials.Add(1)
	out := make(chan string, 100_000) // a server reads, whether its client does or not
	go func() {
		defer close(out)
		for in := bufio.NewReader(far); ; {
			words, err := request(in)
			if err != nil {
				return
			}
			answer := ""
			if s.answer != nil {
				answer = s.answer(n, words)
			}
			if answer == "" {
				answer = plain(words)
			}
			if answer != nothing {
				out <- answer
			}
		}
	}()
	go func() {
		defer far.Close()
		for text := range out {
			_, _ = io.WriteString(far, text)
		}
	}()
	return rewriting{near, func(b []byte) []byte {
		time.Sleep(s.slow)
		return b
	}}, nil
}

func request(in *bufio.Reader) (words []string, err error) {
	line := func(mark string) (n int) {
		text, e := in.ReadString('\n')
		if e != nil {
			err = e
			return 0
		}
		n, _ = strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(text, mark)))
		return n
	}
	for range line("*") {
		word := make([]byte, line("$")+2)
		if _, e := io.ReadFull(in, word); e != nil {
			return nil, e
		}
		words = append(words, string(word[:len(word)-2]))
	}
	return words, err
}

// plain is what a server answers.
func plain(words []string) (text string) {
	switch verb := strings.ToLower(words[0]); verb {
	case "subscribe", "unsubscribe", "ssubscribe", "sunsubscribe":
		for _, channel := range words[1:] {
			text += fmt.Sprintf("*3\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n:1\r\n", len(verb), verb, len(channel), channel)
		}
		return text
	case "ping":
		return "*2\r\n$4\r\npong\r\n$0\r\n\r\n"
	default:
		return "-ERR unknown command\r\n"
	}
}

// inTalk runs a test with a driver for s, in fake time.
func inTalk(t *testing.T, s *talker, opt redis.Options, f func(t *testing.T, r driver.Redis)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		opt.Addr, opt.Dialer = "127.0.0.1:1", s.dial
		rdb := redis.NewClient(&opt)
		defer time.Sleep(time.Minute)
		defer rdb.Close()
		f(t, redlatchgoredis.Use(rdb))
	})
}

// inRealTime returns a driver for s without a time-out for writing. go-redis locks
// a mutex while it writes, which stops fake time if somebody waits for it.
func inRealTime(t *testing.T, s *talker) driver.Redis {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", Dialer: s.dial, WriteTimeout: -1})
	t.Cleanup(func() { rdb.Close() })
	return redlatchgoredis.Use(rdb)
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// For each refusal that was over, all channels that had been refused were looked
// at.
func TestManyRefusedChannelsCostNoMoreEach(t *testing.T) {
	each := func(n int) (cost time.Duration) {
		var refusals atomic.Int64
		s := &talker{answer: func(_ int64, words []string) string {
			if words[0] != "subscribe" {
				return ""
			}
			refusals.Add(1)
			return "-NOPERM no permissions\r\n"
		}}
		inTalk(t, s, redis.Options{}, func(t *testing.T, r driver.Redis) {
			for i := range n {
				t.Cleanup(r.Subscribe(strconv.Itoa(i), false, func(driver.Notice) {}))
			}
			time.Sleep(5 * time.Second)
			before, start := refusals.Load(), cpu()
			for refusals.Load() < before+10_000 {
				time.Sleep(time.Second)
			}
			cost = (cpu() - start) / time.Duration(refusals.Load()-before)
		})
		return cost
	}
	few, many := each(100), each(10_000)
	t.Logf("%v, %v", few, many)
	if many > 5*few {
		t.Errorf("a refusal of 100 channels takes %v, of 10,000 channels %v", few, many)
	}
}

// A connection on which nothing can be written kept its channels: without
// WriteTimeout for ever.
func TestAWriteThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	s := &talker{answer: func(conn int64, words []string) string {
		if words[len(words)-1] == "deaf" && conn == 1 {
			<-over
		}
		return ""
	}}
	defer close(over)
	r := inRealTime(t, s)
	confirmed := listen(t, r, "channel", false)
	<-confirmed
	for _, channel := range []string{"deaf", "more"} {
		listen(t, r, channel, false)
	}
	select {
	case <-confirmed:
	case <-time.After(20 * time.Second):
		t.Error("the connection is not given up")
	}
}

// A connection was not given up while there was always something more to ask for.
func TestASilentConnectionIsFoundOutWhileMuchIsAsked(t *testing.T) {
	t.Parallel()
	var silent atomic.Bool
	s := &talker{slow: 10 * time.Millisecond, answer: func(conn int64, _ []string) string {
		if conn == 1 && silent.Load() {
			return nothing
		}
		return ""
	}}
	r := inRealTime(t, s)
	<-listen(t, r, "channel", false)
	silent.Store(true)
	start := time.Now()
	for i := 0; s.dials.Load() < 2; i++ {
		listen(t, r, strconv.Itoa(i), false)
		time.Sleep(s.slow / 2)
		if time.Since(start) > 20*time.Second {
			t.Fatal("the connection is not given up")
		}
	}
}

// go-redis replaces a connection without a word when a maintenance or some errors
// want it to, if the dialer minds no context. Nobody renewed what may have been
// lost with the old one, and what was to be answered there was waited for.
func TestAConnectionThatGoRedisReplacesIsABreak(t *testing.T) {
	s := &talker{answer: func(conn int64, words []string) string {
		if conn == 1 && words[0] == "ping" {
			return "-READONLY You can't write against a read only replica.\r\n"
		}
		return ""
	}}
	inTalk(t, s, redis.Options{}, func(t *testing.T, r driver.Redis) {
		confirmed := listen(t, r, "channel", false)
		<-confirmed
		var breaks atomic.Int64
		defer r.OnBreak(func(string) { breaks.Add(1) })()
		time.Sleep(3*time.Second + time.Millisecond)
		synctest.Wait()
		if n := s.dials.Load(); n < 2 {
			t.Fatalf("%d connections", n)
		}
		if n := breaks.Load(); n != 1 {
			t.Errorf("%d breaks were told", n)
		}
	})
}
