package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// A machine is where a run took place.
type machine struct {
	Cores  int    `json:"cores"`
	CPU    string `json:"cpu"`
	Memory string `json:"memory"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	Server string `json:"server"`
	Date   string `json:"date"`
}

func describeMachine(s *server) machine {
	return machine{
		Cores: runtime.NumCPU(), CPU: field("/proc/cpuinfo", "model name"), Memory: memory(), Kernel: kernel(),
		Go: runtime.Version(), Server: s.version, Date: time.Now().UTC().Format("2006-01-02"),
	}
}

// field finds "name : value" in a file of /proc.
func field(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func memory() string {
	var kib int64
	if _, err := fmt.Sscanf(field("/proc/meminfo", "MemTotal"), "%d kB", &kib); err != nil {
		return "memory unknown"
	}
	return fmt.Sprintf("%d GiB", (kib+1<<19)>>20)
}

func kernel() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOOS
	}
	return runtime.GOOS + " " + strings.TrimSpace(string(text))
}

// version is that of a module in this program, as in "v1.2.3".
func version(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "(unknown version)"
}

func goredisVersion() string { return "go-redis " + version("github.com/redis/go-redis/v9") }
func rueidisVersion() string { return "rueidis " + version("github.com/redis/rueidis") }
func valkeygoVersion() string {
	return "valkey-go " + version("github.com/valkey-io/valkey-go")
}
