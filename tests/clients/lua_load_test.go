package clients

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	_ "github.com/redlatch/redlatch/fence" // go test sees a change of a script only as one of a package
	_ "github.com/redlatch/redlatch/internal/lua"
	"github.com/redlatch/redlatch/internal/script"
)

// A server compiles every script, and knows it by the name that we call it.
func TestEveryScriptLoads(t *testing.T) {
	m := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr()})
	defer rdb.Close()
	for _, dir := range []string{"../../internal/lua", "../../fence"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.lua"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no scripts in %s: %v", dir, err)
		}
		for _, file := range files {
			s := script.Load(os.DirFS(dir), strings.TrimSuffix(filepath.Base(file), ".lua"))
			sha, err := rdb.ScriptLoad(t.Context(), s.Source()).Result()
			if err != nil || sha != s.SHA() {
				t.Errorf("%s: loaded as %q (%v), want %q", s.Name(), sha, err, s.SHA())
			}
		}
	}
}
