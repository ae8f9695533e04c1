package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

var etcdMutex = implementation{
	name: "etcd",
	settings: "concurrency.Mutex of go.etcd.io/etcd/client/v3 " + version("go.etcd.io/etcd/client/v3") +
		" with its defaults and a session for each goroutine, on an etcd server of one member with its defaults (Debian's etcd-server). It writes each lock to disk, which Redis does not. The work of the server and the network is not counted",
	kind:  peer,
	locks: []lockType{fairLock},
	apart: true,
	open: func(j job) (locker, error) {
		client, err := newEtcdClient(j.Addr)
		if err != nil {
			return nil, err
		}
		l := &etcdLocker{client: client}
		for _, key := range j.keys() {
			session, err := concurrency.NewSession(client)
			if err != nil {
				return nil, err
			}
			l.locks = append(l.locks, concurrency.NewMutex(session, key))
		}
		return l, nil
	},
}

func newEtcdClient(addr string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: 5 * time.Second})
}

type etcdLocker struct {
	client *clientv3.Client
	locks  []*concurrency.Mutex
}

func (l *etcdLocker) acquire(ctx context.Context, g int) error { return l.locks[g].Lock(ctx) }
func (l *etcdLocker) release(ctx context.Context, g int) error { return l.locks[g].Unlock(ctx) }
func (l *etcdLocker) close()                                   { _ = l.client.Close() }

// etcdServer is the name of the program.
const etcdServer = "etcd"

// etcdCommand runs an etcd server of one member. The member is named after its
// directory, which no other has.
func etcdCommand(binary, port, dir string) *exec.Cmd {
	url := "http://127.0.0.1:" + port
	cmd := exec.CommandContext(context.Background(), binary, "--name", filepath.Base(dir), "--data-dir", filepath.Join(dir, "data"),
		"--listen-client-urls", url, "--advertise-client-urls", url, "--listen-peer-urls", "http://127.0.0.1:0")
	cmd.Dir = dir
	return cmd
}

// etcdAnswers says whether it is this server that answers.
func etcdAnswers(ctx context.Context, addr string, cmd *exec.Cmd) bool {
	client, err := newEtcdClient(addr)
	if err != nil {
		return false
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	answer, err := client.MemberList(ctx)
	return err == nil && len(answer.Members) == 1 && answer.Members[0].Name == filepath.Base(cmd.Dir)
}
