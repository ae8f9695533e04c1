package lua

// Scripts by which clients say who they are, and ask one another.
var (
	ClientAsk  = load("client.ask")
	ClientNote = load("client.note")
	ClientRead = load("client.read")
	ClientTell = load("client.tell")
)
