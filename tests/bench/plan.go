package main

import (
	"fmt"
	"time"
)

// mostTime is how long a run may take, with everybody who can take part.
const mostTime = 30 * time.Minute

// What a measurement takes beside its warm-up and its length, as measured on two
// cores.
const (
	startTime   = 75 * time.Millisecond  // a process of ours, its start and its end
	jvmTime     = 2 * time.Second        // a process of Redisson's
	etcdTime    = 700 * time.Millisecond // a server of etcd
	replicaTime = 1500 * time.Millisecond
	clientsTime = 5 * time.Second // a thousand clients
	shareTime   = 45 * time.Second
)

// A plan is what a run is going to do.
type plan struct {
	measurements int
	takes        time.Duration
}

// planOf sums up what a run does, if wanted says which implementation is measured
// in which scenario.
func planOf(d durations, runs int, wanted func(scenario, implementation) bool) (p plan) {
	for _, s := range scenarios {
		for _, i := range implementations {
			if i.takesPart(s) && wanted(s, i) {
				n := i.runs(s, runs)
				p.measurements += n
				p.takes += time.Duration(n) * d.once(s, i)
			}
		}
	}
	return p
}

// once is how long one measurement takes.
func (d durations) once(s scenario, i implementation) time.Duration {
	all := d.of(s, i) + d.warmUp(s) + time.Duration(s.Processes)*startTime
	if i.open == nil {
		all += jvmWarm(s, d.warm) + time.Duration(s.Processes)*jvmTime
	}
	if i.apart {
		all += etcdTime
	}
	if s.Replica {
		all += replicaTime
	}
	if s.Lock == attendance {
		all += clientsTime
	}
	return all
}

func (p plan) String() string {
	return fmt.Sprintf("%s, about %v, %v for the server's share and what things cost, and up to %v more for those that the machine disturbs",
		plural(p.measurements, "measurement"), p.takes.Round(time.Second), (shareTime + costsTake()).Round(time.Second), spareTime)
}
