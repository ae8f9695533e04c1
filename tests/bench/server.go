package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redlatch/redlatch/internal/heldport"
)

// serverEnv makes this program keep a server: see keepServer.
const serverEnv = "REDLATCH_BENCH_SERVER"

// A server is a redis-server, valkey-server or etcd that belongs to this run.
type server struct {
	addr    string
	dir     string        // its own; goes with it
	version string        // as --version has it
	rdb     *redis.Client // unused of etcd
	keeper  *exec.Cmd
	input   io.Closer
}

// startServer starts the server of that name on a free loopback port.
func startServer(root, name string) (*server, error) {
	binary, version, err := serverVersion(root, name)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &server{keeper: exec.CommandContext(context.Background(), self), version: version}
	s.keeper.Env = append(os.Environ(), serverEnv+"="+binary)
	s.keeper.Stderr = os.Stderr
	input, output, err := startPiped(s.keeper)
	if err != nil {
		return nil, err
	}
	s.input = input
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s did not start", binary), s.keeper.Wait())
	}
	s.addr, s.dir, _ = strings.Cut(strings.TrimSpace(line), " ")
	s.rdb = redis.NewClient(&redis.Options{Addr: s.addr})
	return s, nil
}

// addReplica starts a replica of s, and returns when it follows.
func (s *server) addReplica(root string) (*server, error) {
	name, _, _ := strings.Cut(strings.ToLower(s.version), " ")
	r, err := startServer(root, name+"-server")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	host, port, _ := net.SplitHostPort(s.addr)
	err = errors.Join(
		s.rdb.ConfigSet(ctx, "repl-diskless-sync-delay", "0").Err(),
		s.rdb.ConfigSet(ctx, "repl-backlog-ttl", "1").Err(), // keeping it would cost the measurements after this one
		r.rdb.ReplicaOf(ctx, host, port).Err(),
	)
	for err == nil {
		var info map[string]map[string]string
		if info, err = r.rdb.InfoMap(ctx, "replication").Result(); err == nil && info["Replication"]["master_link_status"] == "up" {
			return r, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	r.stop()
	return nil, fmt.Errorf("replica: %w", err)
}

// stop ends the server and waits for that.
func (s *server) stop() {
	_ = s.rdb.Close()
	_ = s.input.Close()
	_ = s.keeper.Wait()
}

// serverVersion finds a server and asks what it is.
func serverVersion(root, name string) (binary, version string, err error) {
	if binary, err = findServer(root, name); err != nil {
		return "", "", err
	}
	text, err := exec.CommandContext(context.Background(), binary, "--version").Output()
	if err != nil {
		return "", "", fmt.Errorf("%s --version: %w", binary, err)
	}
	return binary, shortVersion(string(text)), nil
}

// findServer looks where the tests look: in REDLATCH_SERVERS and then nowhere
// else, in .servers/bin, in PATH.
func findServer(root, name string) (string, error) {
	if dir := os.Getenv("REDLATCH_SERVERS"); dir != "" {
		return exec.LookPath(filepath.Join(dir, name))
	}
	if path, err := exec.LookPath(filepath.Join(root, ".servers", "bin", name)); err == nil {
		return path, nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w: run `make bench`, or name a directory that holds it in REDLATCH_SERVERS", err)
	}
	return path, nil
}

// shortVersion turns "Redis server v=7.0.15 sha=..." into "Redis 7.0.15", and
// "etcd Version: 3.4.23" and more lines into "etcd 3.4.23".
func shortVersion(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	text = strings.Replace(text, "Version: ", "v=", 1)
	words := strings.Fields(text)
	for _, w := range words {
		if v, ok := strings.CutPrefix(w, "v="); ok {
			return words[0] + " " + v
		}
	}
	return strings.TrimSpace(text)
}

// keepServer is the whole life of a process between the run and its server. It
// says where the server listens and what its directory is, and stops it, by its
// pid, when its own input ends; so nothing outlives a run, whatever ended that.
func keepServer(binary string) error {
	signal.Ignore(os.Interrupt) // the run's to handle; its end is what counts here
	dir, err := os.MkdirTemp("", "redlatch-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	port, letGo, err := heldport.Take()
	if err != nil {
		return err
	}
	defer letGo()
	addr := heldport.Addr(port)
	cmd, err := launch(binary, port, dir)
	if err != nil {
		return err
	}
	fmt.Println(addr, dir)
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	_ = cmd.Wait()
	return nil
}

// launch starts a server, and returns when it answers.
func launch(binary, port, dir string) (cmd *exec.Cmd, err error) {
	addr := heldport.Addr(port)
	answers := redisAnswers
	if filepath.Base(binary) == etcdServer {
		cmd, answers = etcdCommand(binary, port, dir), etcdAnswers
	} else {
		cmd = exec.CommandContext(context.Background(), binary, "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no")
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if answers(ctx, addr, cmd) {
			return cmd, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return nil, fmt.Errorf("%s did not answer on %s", binary, addr)
}

// redisAnswers says whether it is this server that answers: another on the port
// would answer PING, too.
func redisAnswers(ctx context.Context, addr string, cmd *exec.Cmd) bool {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	info, err := rdb.InfoMap(ctx, "server").Result()
	return err == nil && info["Server"]["process_id"] == fmt.Sprint(cmd.Process.Pid)
}
