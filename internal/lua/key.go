package lua

// Scripts about keys, whatever is stored there.
var (
	KeyExpire = load("key.expire")
	KeyTypes  = load("key.types")
)
