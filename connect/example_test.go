package connect_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/connect"
	"github.com/redlatch/redlatch/connect/openrueidis"
)

func Example() {
	driver, err := openrueidis.Open(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Print(err)
		return
	}
	defer driver.Close()
	locks, err := redlatch.New(driver, redlatch.Config{})
	if err != nil {
		log.Print(err)
		return
	}
	defer locks.Close()

	err = locks.Lock("invoices").Do(context.Background(), func(ctx context.Context) error {
		fmt.Println("alone") // ctx ends when the lock is lost
		return nil
	})
	if err != nil {
		log.Print(err)
	}
}

func ExampleParseRedisson() {
	settings, warnings, err := connect.ParseRedisson([]byte(`
singleServerConfig:
  address: redis://${REDIS_HOST:-localhost}:6379
  database: 2
  connectionPoolSize: 64
lockWatchdogTimeout: 20000
`), os.LookupEnv)
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println(settings, settings.Config.WatchdogTimeout)
	for _, w := range warnings {
		fmt.Println(w)
	}
	// Then: driver, err := openrueidis.OpenSettings(settings), and redlatch.New(driver, settings.Config).

	// Output:
	// redis://localhost:6379/2 20s
	// line 5: singleServerConfig.connectionPoolSize: has no effect: all requests to a server share one connection, and subscriptions another
}

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
