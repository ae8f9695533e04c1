package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/driver"
)

// Servers returns the servers of a client that have keys: one, or the primaries
// of a cluster. Address is how to call the one. Mask is applied to all that
// servers say in errors.
func Servers(ctx context.Context, client rueidis.Client, address string, mask func(string) string) ([]Server, error) {
	if client.Mode() != rueidis.ClientModeCluster {
		return []Server{&node{client, address, true, mask}}, nil
	}
	var all []Server
	var nodes []*node
	clients := client.Nodes()
	for _, addr := range slices.Sorted(maps.Keys(clients)) {
		nodes = append(nodes, &node{clients[addr], addr, false, mask})
	}
	primaries, err := primariesOf(ctx, nodes)
	if err != nil {
		return nil, err
	}
	for _, n := range nodes {
		if primaries[n.address] {
			all = append(all, n)
		}
	}
	if len(all) == 0 { // they call themselves something else than clients do, or do not say it
		for _, n := range nodes {
			if v := (&visit{Server: n, ctx: ctx}); !v.replicates() {
				all = append(all, n)
			}
		}
	}
	return all, nil
}

// primariesOf asks for the addresses of primaries that have slots, until a node
// answers. There are none if that is refused.
func primariesOf(ctx context.Context, nodes []*node) (map[string]bool, error) {
	lost := errors.New("the cluster has no nodes")
	for _, n := range nodes {
		v := &visit{Server: n, ctx: ctx}
		reply, _ := v.ask("CLUSTER", "SLOTS")
		if v.lost != nil {
			lost = v.lost
			continue
		}
		primaries := map[string]bool{}
		for _, entry := range list(reply) {
			if e := list(entry); len(e) > 2 && len(list(e[2])) > 1 {
				host, _, _ := net.SplitHostPort(n.address)
				primary := list(e[2])
				primaries[net.JoinHostPort(cmp.Or(str(primary[0]), host), str(primary[1]))] = true
			}
		}
		return primaries, nil
	}
	return nil, lost
}

// replicates says whether the server says that it is a replica.
func (v *visit) replicates() bool {
	text, _ := v.ask("INFO", "replication")
	return strings.Contains(str(text), "role:slave")
}

// A node is one server behind a rueidis client.
type node struct {
	client  rueidis.Client
	address string
	single  bool
	mask    func(string) string
}

func (n *node) Address() string { return n.address }

func (n *node) Single() bool { return n.single }

func (n *node) Do(ctx context.Context, commands ...[]string) []Answer {
	built := make(rueidis.Commands, 0, len(commands))
	for _, args := range commands {
		built = append(built, n.client.B().Arbitrary(args...).Build())
	}
	answers := make([]Answer, 0, len(commands))
	for _, reply := range n.client.DoMulti(ctx, built...) {
		value, err := reply.ToAny()
		if rueidis.IsRedisNil(err) {
			err = nil
		}
		answers = append(answers, Answer{flat(value), n.refusal(err)})
	}
	return answers
}

// refusal makes a *ReplyError of a server's error.
func (n *node) refusal(err error) error {
	var reply *rueidis.RedisError
	if !errors.As(err, &reply) {
		return err
	}
	return &ReplyError{driver.ServerError(reply.Error(), err).Code, n.mask(reply.Error())}
}

// flat turns what RESP3 calls a map into a list, as RESP2 has it.
func flat(v any) any {
	switch v := v.(type) {
	case map[string]any:
		var l []any
		for name, value := range v {
			l = append(l, name, flat(value))
		}
		return l
	case []any:
		l := make([]any, len(v))
		for i, value := range v {
			l[i] = flat(value)
		}
		return l
	case error:
		return v.Error()
	case float64:
		return fmt.Sprint(v)
	}
	return v
}

// listenLimit is how long a subscription may take to be confirmed.
const listenLimit = 3 * time.Second

var errNotConfirmed = errors.New("the subscription was not confirmed")

func (n *node) Listen(ctx context.Context, channel string, sharded bool) (<-chan string, func(), error) {
	ctx, cancel := context.WithCancel(ctx)
	messages := make(chan string, 16)
	confirmed, ended := make(chan struct{}, 16), make(chan error, 1)
	hooked := rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
		if s.Kind == "subscribe" || s.Kind == "ssubscribe" {
			select {
			case confirmed <- struct{}{}:
			default:
			}
		}
	})
	command := n.client.B().Subscribe().Channel(channel).Build()
	if sharded {
		command = n.client.B().Ssubscribe().Channel(channel).Build()
	}
	go func() {
		ended <- n.client.Receive(hooked, command, func(m rueidis.PubSubMessage) {
			select {
			case messages <- m.Message:
			default: // nobody needs so many
			}
		})
	}()
	timer := time.NewTimer(listenLimit)
	defer timer.Stop()
	select {
	case <-confirmed:
		return messages, cancel, nil
	case err := <-ended:
		cancel()
		if err == nil {
			err = errNotConfirmed
		}
		return nil, nil, n.refusal(err)
	case <-timer.C:
		cancel()
		return nil, nil, &ReplyError{"TIMEOUT", errNotConfirmed.Error()}
	}
}
