package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

const (
	samples = 9 // of a round trip

	// A renewal has 610 ms of its 30 s left when the hold is given up; an attempt
	// at a lock may take 3 s.
	slowTrip     = 20 * time.Millisecond
	verySlowTrip = 300 * time.Millisecond
)

// latency measures how long the server takes to answer.
func latency(v *visit) []Finding {
	const check = "latency"
	var trips []time.Duration
	for range 1 + samples {
		sent := time.Now()
		if _, why := v.ask("PING"); why != nil {
			return nil
		}
		trips = append(trips, time.Since(sent))
	}
	return judgeLatency(check, trips[1:]) // the first may have connected
}

func judgeLatency(check string, trips []time.Duration) []Finding {
	slices.Sort(trips)
	middle, worst := trips[len(trips)/2], trips[len(trips)-1]
	what := fmt.Sprintf("a round trip takes %s, the longest of %d %s", short(middle), len(trips), short(worst))
	const remedy = "run where the server is near; look at its load, SLOWLOG and LATENCY DOCTOR"
	switch {
	case worst >= verySlowTrip:
		return found(check, Warning, what, "renewals come late, and leases of a few seconds are lost without an outage", remedy)
	case middle >= slowTrip:
		return found(check, Note, what, "to acquire a free lock takes one round trip, and to release it another", remedy)
	}
	return fine(check, what)
}

// clock compares the server's clock with this machine's.
func clock(v *visit) []Finding {
	const check = "clock"
	var skew, doubt time.Duration
	for i := range samples {
		sent := time.Now()
		reply, why := v.ask("TIME")
		trip := time.Since(sent)
		parts := list(reply)
		if why != nil || len(parts) != 2 {
			return found(check, Note, "TIME is refused", "it is not known whether the clocks agree; locks need TIME, too", "see the check of commands")
		}
		server := time.Unix(num(parts[0]), num(parts[1])*1000)
		if i == 0 || trip/2 < doubt { // it was read at some moment of the trip
			doubt, skew = trip/2, server.Sub(sent.Add(trip/2))
		}
	}
	return judgeClock(check, skew, doubt, v.opt.MaxClockSkew)
}

func judgeClock(check string, skew, doubt, limit time.Duration) []Finding {
	way := "ahead of"
	if skew < 0 {
		way = "behind"
	}
	what := fmt.Sprintf("the server's clock is %s %s this machine's, give or take %s", short(skew.Abs()), way, short(doubt))
	const (
		consequence = "redlatch uses only the server's clock; for a Redisson client with this machine's clock, values of group locks, permits " +
			"and rates expire too early or too late by that much"
		remedy = "synchronise both clocks (NTP), or raise Config.Redisson.MaxClockSkew and --max-clock-skew to more than this"
	)
	switch {
	case skew.Abs()-doubt > limit:
		return found(check, Warning, what, consequence, remedy)
	case skew.Abs()+doubt > limit:
		return found(check, Note, what, "it is not known whether that is more than the allowed "+limit.String()+"; if it is, "+consequence, remedy)
	}
	return fine(check, what)
}

// short is a duration as people read it.
func short(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Microsecond).String()
}

// size is a number of bytes as people read it.
func size(n int64) string {
	const unit = 1024
	if n < unit {
		return strconv.FormatInt(n, 10) + " B"
	}
	f, prefixes := float64(n)/unit, "KMGTP"
	for f >= unit && len(prefixes) > 1 {
		f, prefixes = f/unit, prefixes[1:]
	}
	return strconv.FormatFloat(f, 'f', 1, 64) + " " + prefixes[:1] + "iB"
}
