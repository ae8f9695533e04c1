package connect

import (
	"context"
	"io"
	"log/slog"
	"reflect"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/driver"
)

// Open is the part that OpenSettings of each driver's package has in common. It
// logs the warnings, has dial make the driver, and returns a client with the
// plan's Config. The client closes a driver that is an io.Closer, and so does
// Open if there is no client.
//
// Errors are those of dial, without the credentials that they may contain, and
// of redlatch.New.
func (plan Plan) Open(dial func() (driver.Redis, error)) (*redlatch.Client, error) {
	plan.logWarnings()
	d, err := dial()
	if err != nil {
		return nil, plan.refused(err)
	}
	client, err := redlatch.New(d, plan.Config)
	if err != nil {
		if d, ok := d.(io.Closer); ok {
			_ = d.Close() // why there is no client is told
		}
		return nil, err
	}
	return client, nil
}

// complete returns cfg with what only s.Config says.
func (s Settings) complete(cfg redlatch.Config) redlatch.Config {
	if cfg.Acks != redlatch.AckAuto {
		s.Config.AckReplicas = 0 // it belongs to the other Acks
	}
	fill(&cfg.Redisson, s.Config.Redisson)
	fill(&cfg, s.Config)
	return cfg
}

// fill sets the fields of a struct that are zero to another one's.
func fill[S any](own *S, other S) {
	o, from := reflect.ValueOf(own).Elem(), reflect.ValueOf(other)
	for i := range o.NumField() {
		if o.Field(i).IsZero() {
			o.Field(i).Set(from.Field(i))
		}
	}
}

func (s Settings) logWarnings() {
	if s.Config.Logger == nil {
		return
	}
	var harmless []string
	for _, w := range s.Warnings {
		if w.Severity == Harmless {
			harmless = append(harmless, w.Key)
			continue
		}
		s.Config.Logger.LogAttrs(context.Background(), slog.LevelWarn, "a key of Redisson's file",
			slog.Int("line", w.Line), slog.String("key", w.Key), slog.String("what", w.Text))
	}
	if len(harmless) > 0 {
		s.Config.Logger.LogAttrs(context.Background(), slog.LevelInfo, "keys of Redisson's file that have no effect, and need none", slog.Any("keys", harmless))
	}
}
