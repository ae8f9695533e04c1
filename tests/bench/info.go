package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// counters are what the server has counted so far.
type counters struct {
	commands float64 // all, those inside scripts included
	scripts  float64 // EVAL, EVALSHA
	in, out  float64 // bytes of the network
	cpu      float64 // seconds
}

func (c counters) minus(o counters) counters {
	return counters{c.commands - o.commands, c.scripts - o.scripts, c.in - o.in, c.out - o.out, c.cpu - o.cpu}
}

func (c counters) plus(o counters) counters {
	return counters{c.commands + o.commands, c.scripts + o.scripts, c.in + o.in, c.out + o.out, c.cpu + o.cpu}
}

func (s *server) counters() (counters, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	info, err := s.rdb.InfoMap(ctx, "stats", "cpu", "commandstats").Result()
	if err != nil {
		return counters{}, err
	}
	var c counters
	for _, section := range info {
		for key, value := range section {
			switch key {
			case "total_commands_processed":
				c.commands = number(value)
			case "total_net_input_bytes":
				c.in = number(value)
			case "total_net_output_bytes":
				c.out = number(value)
			case "used_cpu_user", "used_cpu_sys":
				c.cpu += number(value)
			case "cmdstat_eval", "cmdstat_evalsha":
				// calls=12,usec=34,...
				calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
				c.scripts += number(calls)
			}
		}
	}
	if c.commands == 0 {
		return c, fmt.Errorf("INFO of %s has no total_commands_processed", s.addr)
	}
	return c, nil
}

func number(text string) float64 {
	f, _ := strconv.ParseFloat(text, 64) // what is not a number counts nothing
	return f
}

// clear makes the server as good as new for the next measurement.
func (s *server) clear() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.rdb.FlushAll(ctx).Err(); err != nil {
		return err
	}
	return s.rdb.ConfigResetStat(ctx).Err()
}
