package sim

// Topologies are the servers that types are played on.
const (
	OneServer   = "one server"
	WithReplica = "one server with a replica"
	Cluster     = "Cluster"
	Endpoint    = "one endpoint before shards"
	Independent = "independent servers"
)

// Topology returns on what a type is played.
func Topology(typ string) string {
	switch typ {
	case "acked":
		return WithReplica
	case "cluster":
		return Cluster
	case "endpoint":
		return Endpoint
	case "red":
		return Independent
	}
	return OneServer
}

// sharded says whether a type is played on servers that have some slots each.
func sharded(typ string) bool { return Topology(typ) == Cluster || Topology(typ) == Endpoint }
