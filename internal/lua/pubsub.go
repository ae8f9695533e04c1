package lua

// Scripts that find out how others can be told.
var (
	PubSubProbe = load("pubsub.probe")
)
