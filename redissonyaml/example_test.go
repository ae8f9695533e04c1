package redissonyaml_test

import (
	"fmt"
	"log"
	"os"

	"github.com/redlatch/redlatch/connect"
	"github.com/redlatch/redlatch/redissonyaml"
)

func ExampleParse() {
	settings, err := redissonyaml.Parse([]byte(`
singleServerConfig:
  address: redis://${REDIS_HOST:-localhost}:6379
  database: 2
  connectionPoolSize: 64
  timeout: 9000
lockWatchdogTimeout: 20000
nettyThreads: 32
`), os.LookupEnv)
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println(settings, settings.Config.WatchdogTimeout)
	for _, line := range connect.WarningLines(settings.Warnings) {
		fmt.Println(line)
	}
	// Then: client, err := redlatchrueidis.OpenSettings(settings, redlatch.Config{})

	// Output:
	// redis://localhost:6379/2 20s
	// line 6: singleServerConfig.timeout: is lowered to 6.666666666s, a third of lockWatchdogTimeout: a dead connection must be noticed before a lock is lost
	// have no effect, and need none: singleServerConfig.connectionPoolSize (line 5), nettyThreads (line 8)
}

// The file of the Java service that takes the same locks.
func ExampleReadFile() {
	settings, err := redissonyaml.ReadFile("redisson.yaml")
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println(settings)
	// Then: client, err := redlatchgoredis.OpenSettings(settings, redlatch.Config{})
}
