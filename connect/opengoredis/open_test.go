package opengoredis

import (
	"errors"
	"testing"

	"github.com/redlatch/redlatch/connect"
)

// With rueidis the locks of that cluster would be in the other database.
func TestADatabaseOfAClusterIsRefused(t *testing.T) {
	if _, err := Open("redis+cluster://127.0.0.1:1/3"); !errors.Is(err, errClusterDatabase) {
		t.Errorf("got %v", err)
	}
	rdb, err := Client(connect.Settings{Mode: connect.Cluster, Addresses: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := rdb.Close(); err != nil {
		t.Error(err)
	}
}
