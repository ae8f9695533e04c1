package renew

import "time"

// kickPause is how often the leases of a lane are looked through for a break.
const kickPause = 50 * time.Millisecond

// A talk is what is known of how a lane's server answers.
type talk struct {
	quiet  time.Time // a batch was not answered: it is silent if nothing is until then; zero: no
	heard  time.Time // when an answer last did
	kicked time.Time
	rekick bool // it is to be kicked once more, soon
}

func (c *Clock) talkLocked(name string) *talk {
	t := c.talks[name]
	if t == nil {
		t = &talk{}
		c.talks[name] = t
	}
	return t
}

// Answered says that the server of a lane has answered some other request: what it
// did not answer is asked again now. It costs next to nothing while there is none.
func (c *Clock) Answered(name string) {
	if c.silent.Load() == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answeredLocked(name, time.Now())
}

// unansweredLocked notes that a batch was not answered, whose pause will be over then.
func (c *Clock) unansweredLocked(name string, over time.Time) {
	if t := c.talkLocked(name); t.quiet.IsZero() {
		t.quiet = over
		c.silent.Add(1)
	}
}

// answeredLocked ends the pauses of a lane that has been silent, and not only to one
// that is refused while others are answered.
func (c *Clock) answeredLocked(name string, now time.Time) {
	t := c.talks[name]
	if t == nil || t.quiet.IsZero() {
		return
	}
	early := now.Before(t.quiet)
	t.quiet = time.Time{}
	c.silent.Add(-1)
	if early || c.closed {
		return
	}
	t.heard = now
	for _, e := range c.leases.entries {
		if l := e.lease; l.lane == name && l.retry > 0 && !l.due {
			c.sendLocked(l)
		}
	}
}

// heardSinceLocked says that a silence has ended since, so that one which lasts is
// another one.
func (c *Clock) heardSinceLocked(name string, since time.Time) bool {
	t := c.talks[name]
	return t != nil && t.heard.After(since)
}
