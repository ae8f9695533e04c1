package redissonyaml_test

import (
	"fmt"
	"log"
	"os"

	"github.com/redlatch/redlatch/redissonyaml"
)

func ExampleParse() {
	settings, err := redissonyaml.Parse([]byte(`
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
	for _, w := range settings.Warnings {
		fmt.Println(w)
	}
	// Then: client, err := redlatchrueidis.OpenSettings(settings, redlatch.Config{})

	// Output:
	// redis://localhost:6379/2 20s
	// line 5: singleServerConfig.connectionPoolSize: has no effect: all requests to a server share one connection, and subscriptions another
}
