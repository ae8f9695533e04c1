package lua

// Scripts about who listens, and how others can be told.
var (
	PubSubCount = load("pubsub.count")
	PubSubProbe = load("pubsub.probe")
)
