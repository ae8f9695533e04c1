package connect_test

import (
	"fmt"
	"log"

	"github.com/redlatch/redlatch/connect"
)

func ExampleParse() {
	s, err := connect.Parse("rediss+sentinel://app:secret@sentinel1,sentinel2:7000/orders/2?cacert=/etc/redis/ca.pem")
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println(s)
	fmt.Println(s.Mode, s.Addresses, s.MasterName, s.Database, s.User, s.Password, s.TLS.CAFile)
	// Output:
	// rediss+sentinel://***@sentinel1:26379,sentinel2:7000/orders/2
	// sentinel [sentinel1:26379 sentinel2:7000] orders 2 app *** /etc/redis/ca.pem
}
