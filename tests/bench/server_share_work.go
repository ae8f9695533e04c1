package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/internal/script"
	"github.com/redlatch/redlatch/internal/wire"
	"github.com/redlatch/redlatch/tests/internal/redissonlua"
)

// Whose scripts are measured.
const (
	oursToRun     = "redlatch"
	redissonsSame = "Redisson's steps"
	setNX         = "SET NX"
)

// A shareWork is what one type of lock or synchronizer has the server do, in one
// library.
type shareWork struct {
	name, who string
	setUp     []shareCommand
	pair      func(n int) []shareCommand // take and give back, for the n-th time
	begin     []shareCommand             // before hand-offs
	handOff   func(n int) []shareCommand // nil: nobody waits for it in a queue, or on a channel, that a pair has not
	channels  []string                   // to which a waiter listens meanwhile
}

// A shareCommand is what a client sends, and what it is answered; an empty answer
// is any.
type shareCommand struct {
	script string // "": a plain command
	keys   []string
	args   []string
	want   string
}

func run1(script string, keys []string, want string, args ...string) shareCommand {
	return shareCommand{script, keys, args, want}
}

// source returns the text of a script of ours, in dir, or of Redisson's, or of
// compare-and-delete.
func source(dir, name string) string {
	if text, ok := redissonlua.Scripts[name]; ok {
		return text
	}
	if name == compareAndDelete {
		return "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
	}
	return script.Load(os.DirFS(dir), name).Source()
}

const (
	compareAndDelete = "compare and delete"
	shareLease       = "30000"
	shareAllowance   = "300000"
	shareClient      = "2d1b7d0a-52c8-8c1f-9b5e-000000000000"
	shareOwners      = 5 // a holder, three that wait, and one that comes
)

func shareOwner(n int) string { return fmt.Sprintf("%s:%d", shareClient, n%shareOwners) }
func shareNonce(n int) string { return strconv.Itoa(1<<51 + 1 + n%shareOwners) }
func shareClock() string      { return strconv.FormatInt(time.Now().UnixMilli(), 10) }

// shareWorks are in the order of the table. Each type is used as the library uses
// it.
func shareWorks() []shareWork {
	name := "bench"
	channel, rwChannel := wire.Prefix(wire.LockChannel, name), wire.Prefix(wire.RWChannel, name)
	lock, token := []string{name}, []string{name, wire.Prefix(wire.LockToken, name)}
	fair := []string{name, wire.Prefix(wire.LockQueue, name), wire.Prefix(wire.LockTimeout, name), wire.Prefix(wire.LockAlive, name)}
	var fairChannels []string
	for n := range shareOwners {
		fairChannels = append(fairChannels, wire.FairChannel(name, shareOwner(n)))
	}

	plain := func(n int) shareCommand { return run1("lock.take", lock, "", shareLease, shareOwner(n)) }
	unlock := func(n int) shareCommand { return run1("lock.release", lock, "", shareOwner(n), channel, "0") }
	fenced := func(n int) shareCommand { return run1("lock.take", token, "", shareLease, shareOwner(n), "0") }
	leads := func(n int) shareCommand { return run1("lock.take", token, "", shareLease, shareOwner(n), "-1") }
	lineUp := func(n int) shareCommand {
		return run1("fairlock.take", fair, "", shareLease, shareOwner(n), channel, shareClient, shareNonce(n), shareAllowance)
	}
	fairUnlock := func(n int) shareCommand {
		return run1("fairlock.release", fair, "1", channel, shareAllowance, shareOwner(n))
	}
	read := func(n int) shareCommand { return run1("readwrite.read.take", lock, "1", shareLease, shareOwner(n)) }
	write := func(n int) shareCommand { return run1("readwrite.write.take", lock, "", shareLease, shareOwner(n)) }
	rwUnlock := func(n int) shareCommand {
		return run1("readwrite.release", lock, "", shareOwner(n), rwChannel, "0")
	}
	group := func(n int) shareCommand {
		return run1("grouplock.take", lock, "", shareLease, shareOwner(n), "1", "value", "1000")
	}
	groupUnlock := func(n int) shareCommand {
		return run1("grouplock.release", lock, "", shareOwner(n), channel, "0", "1", "value", "1000")
	}

	theirLock := func(n int) shareCommand { return run1("redisson.take", lock, "", shareLease, shareOwner(n)) }
	theirUnlock := func(n int) shareCommand {
		return run1("redisson.unlock", lock, "1", shareOwner(n), channel, shareLease)
	}
	theirFair := func(n int) shareCommand {
		return run1("redisson.fair", fair[:3], "", shareLease, shareOwner(n), shareAllowance, shareClock())
	}
	theirFairUnlock := func(n int) shareCommand {
		return run1("redisson.fair.unlock", fair[:3], "1", shareOwner(n), channel, shareClock())
	}
	theirRead := func(n int) shareCommand {
		return run1("redisson.read", []string{name, "{" + name + "}:" + shareOwner(n) + ":rwlock_timeout"}, "nil", shareLease, shareOwner(n))
	}
	theirUnread := func(n int) shareCommand {
		return run1("redisson.unread", []string{name, "{" + name + "}"}, "1", shareOwner(n), rwChannel)
	}
	theirWrite := func(n int) shareCommand { return run1("redisson.write", lock, "", shareLease, shareOwner(n)) }
	theirUnwrite := func(n int) shareCommand {
		return run1("redisson.unwrite", lock, "1", shareOwner(n), rwChannel, shareLease)
	}
	theirGroup := func(n int) shareCommand {
		return run1("redisson.group", lock, "", shareLease, shareOwner(n), "value", shareClock())
	}
	theirUngroup := func(n int) shareCommand {
		return run1("redisson.group.unlock", lock, "1", shareOwner(n), channel, "value", shareClock())
	}

	works := []shareWork{
		{
			name: "plain", who: setNX, pair: func(n int) []shareCommand {
				return []shareCommand{
					{args: []string{"SET", name, shareOwner(n), "NX", "PX", shareLease}, want: "OK"},
					run1(compareAndDelete, lock, "1", shareOwner(n)),
				}
			},
		},
		byTurns("plain", oursToRun, []string{channel}, plain, unlock),
		byTurns("plain", redissonsSame, []string{channel}, theirLock, theirUnlock),
		byTurns("plain with a fencing token", oursToRun, []string{channel}, fenced, unlock),
		byTurns("election", oursToRun, []string{channel}, leads, unlock),
		{
			name: "fair", who: oursToRun, channels: fairChannels,
			pair:    func(n int) []shareCommand { return []shareCommand{lineUp(n), fairUnlock(n)} },
			begin:   []shareCommand{lineUp(0), lineUp(1), lineUp(2), lineUp(3)},
			handOff: func(n int) []shareCommand { return []shareCommand{lineUp(n + 4), fairUnlock(n)} },
		},
		{
			name: "fair", who: redissonsSame, channels: fairChannels,
			pair:  func(n int) []shareCommand { return []shareCommand{theirFair(n), theirFairUnlock(n)} },
			begin: []shareCommand{theirFair(0), theirFair(1), theirFair(2), theirFair(3)},
			handOff: func(n int) []shareCommand {
				return []shareCommand{theirFair(n + 4), theirFairUnlock(n), wanting(theirFair(n+1), "nil")}
			},
		},
		{name: "read", who: oursToRun, pair: func(n int) []shareCommand { return []shareCommand{read(n), rwUnlock(n)} }},
		{name: "read", who: redissonsSame, pair: func(n int) []shareCommand { return []shareCommand{theirRead(n), theirUnread(n)} }},
		byTurns("write", oursToRun, []string{rwChannel}, write, rwUnlock),
		byTurns("write", redissonsSame, []string{rwChannel}, theirWrite, theirUnwrite),
		byTurns("group, one value", oursToRun, []string{channel}, group, groupUnlock),
		byTurns("group, one value", redissonsSame, []string{channel}, theirGroup, theirUngroup),
		{
			name: "multi, two locks", who: oursToRun, pair: func(n int) []shareCommand {
				other := name + " 2"
				return []shareCommand{
					run1("multilock.take", []string{name, other}, "1", shareLease, shareOwner(n), shareOwner(n)), unlock(n),
					run1("lock.release", []string{other}, "1", shareOwner(n), wire.Prefix(wire.LockChannel, other), "0"),
				}
			},
		},
	}
	return append(works, synchronizerWorks(name)...)
}

// wanting returns a command that has to be answered so.
func wanting(c shareCommand, want string) shareCommand {
	c.want = want
	return c
}

// byTurns is a lock for which waiters listen: who comes is refused, hears of the
// release, and takes it.
func byTurns(name, who string, channels []string, take, unlock func(n int) shareCommand) shareWork {
	return shareWork{
		name: name, who: who, channels: channels,
		pair:    func(n int) []shareCommand { return []shareCommand{take(n), unlock(n)} },
		begin:   []shareCommand{take(0)},
		handOff: func(n int) []shareCommand { return []shareCommand{take(n + 1), unlock(n), take(n + 1)} },
	}
}

// synchronizerWorks are those that are no locks.
func synchronizerWorks(name string) []shareWork {
	const sessionMs = "60000"
	session := wire.Session(name, shareClient, "bench")
	channel, timeouts := wire.Prefix(wire.SemaphoreChannel, name), wire.Suffix(name, wire.PermitTimeout)
	inSession := func(script string, keys []string, n int, args ...string) shareCommand {
		return run1(script, append(keys, session), "", append([]string{strconv.Itoa(n), sessionMs}, args...)...)
	}

	exchange := func(n int, args ...string) shareCommand {
		return inSession("semaphore.exchange", []string{name}, n+2, append([]string{channel}, args...)...)
	}
	takePermit := func(n int) shareCommand {
		return run1("expirable.take", []string{name, timeouts}, "", channel, shareLease, "1", shareOwner(n))
	}
	givePermit := func(n int) shareCommand {
		return run1("expirable.release", []string{name, timeouts}, "", channel, "0", shareOwner(n))
	}
	theirPermit := func(n int) shareCommand {
		at := time.Now().UnixMilli()
		return run1("redisson.permit", []string{name, timeouts}, "", shareOwner(n), channel, fmt.Sprint(at), fmt.Sprint(at+30_000))
	}
	theirPermitBack := func(n int) shareCommand {
		return run1("redisson.permit.release", []string{name, timeouts}, "1", shareOwner(n), channel)
	}
	expirable := byTurns("expirable semaphore", oursToRun, []string{channel}, takePermit, givePermit)
	theirs := byTurns("expirable semaphore", redissonsSame, []string{channel}, theirPermit, theirPermitBack)
	expirable.setUp = []shareCommand{inSession("expirable.try_set", []string{name, timeouts}, 1, channel, "1")}
	theirs.setUp = expirable.setUp

	latchChannel := wire.LatchChannel(name)
	limiter := []string{name, name + " value", name + " permits", name + " own value", name + " own permits", name + " recount", name + " own recount"}
	barrier := []string{name, name + " record", name + " alive", name + " ended"}
	arrive := func(n int, id string) shareCommand {
		return run1("barrier.arrive", barrier, "", fmt.Sprintf("b:%d", n+1), id, shareClient, "2", shareLease, wire.Prefix(wire.BarrierChannel, name))
	}
	return []shareWork{
		{
			name: "semaphore", who: oursToRun, channels: []string{channel},
			setUp: []shareCommand{inSession("semaphore.set", []string{name}, 1, channel, "1", "0")},
			pair: func(n int) []shareCommand {
				return []shareCommand{exchange(2*n, "0", "0", "0", "1"), exchange(2*n+1, "1", "0", "0")}
			},
			begin: []shareCommand{exchange(0, "0", "0", "0", "1")},
			handOff: func(n int) []shareCommand {
				return []shareCommand{exchange(3*n+1, "0", "0", "0", "1"), exchange(3*n+2, "1", "0", "0"), exchange(3*n+3, "0", "0", "0", "1")}
			},
		},
		expirable,
		theirs,
		{name: "latch: set to 1, counted down", who: oursToRun, pair: func(n int) []shareCommand {
			return []shareCommand{inSession("latch.set", []string{name}, 2*n+1, "1", latchChannel), inSession("latch.down", []string{name}, 2*n+2, latchChannel, "1")}
		}},
		{
			name: "rate limiter: one take", who: oursToRun,
			setUp: []shareCommand{inSession("ratelimiter.tryset", limiter, 1, "1000000", "10", "0", "0")},
			pair: func(n int) []shareCommand {
				return []shareCommand{run1("ratelimiter.take", limiter, "[1 1000000]", "1000", fmt.Sprintf("%016d", n), "1")}
			},
		},
		{
			name: "barrier of two: both arrive", who: oursToRun,
			setUp: []shareCommand{run1("barrier.reset", barrier, "done", "", "b", "channel", "2")},
			pair: func(n int) []shareCommand {
				return []shareCommand{arrive(n, "one"), wanting(arrive(n, "two"), "[tripped two 0]")}
			},
		},
	}
}
