package sim

// Topologies are the servers that types are played on.
const (
	OneServer   = "one server"
	WithReplica = "one server with a replica"
	Cluster     = "Cluster"
	Independent = "independent servers"
)

// Topology returns on what a type is played.
func Topology(typ string) string {
	switch typ {
	case "acked":
		return WithReplica
	case "cluster":
		return Cluster
	case "red":
		return Independent
	}
	return OneServer
}
