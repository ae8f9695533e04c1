package rueidis_test

import (
	"context"
	"testing"

	"github.com/redis/rueidis"

	"github.com/redlatch/redlatch/driver"
	"github.com/redlatch/redlatch/internal/testserver"
	"github.com/redlatch/redlatch/redlatchrueidis"
)

var one = driver.NewScript("one", "return 1")

func BenchmarkRun(b *testing.B) {
	addr := testserver.Start(b, testserver.Redis).Addr()
	s, keys, args := one, []string{"key"}, []string{"30000", "owner"}
	ctx := context.Background()
	opt := rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true, DisableCache: true, PipelineMultiplex: -1}
	plain, err := rueidis.NewClient(opt)
	if err != nil {
		b.Fatal(err)
	}
	defer plain.Close()
	d, err := redlatchrueidis.New(opt)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Run(ctx, s, keys, args); err != nil {
		b.Fatal(err)
	}
	do := func(b *testing.B) {
		b.Helper()
		cmd := plain.B().Evalsha().Sha1(s.SHA()).Numkeys(1).Key(keys...).Arg(args...).Build()
		if n, err := plain.Do(ctx, cmd).AsInt64(); err != nil || n != 1 {
			b.Fatal(n, err)
		}
	}
	run := func(b *testing.B) {
		b.Helper()
		if reply, err := d.Run(ctx, s, keys, args); err != nil || reply.Int != 1 {
			b.Fatal(reply, err)
		}
	}
	for _, c := range []struct {
		name string
		f    func(*testing.B)
	}{{"client", do}, {"driver", run}} {
		b.Run("one/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.f(b)
			}
		})
		b.Run("many/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					c.f(b)
				}
			})
		})
	}
}
