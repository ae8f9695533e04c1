package lua

// Scripts of the rate limiter.
var (
	RateLimiterAvailable = load("ratelimiter.available")
	RateLimiterConfig    = load("ratelimiter.config")
	RateLimiterDelete    = load("ratelimiter.delete")
	RateLimiterInfo      = load("ratelimiter.info")
	RateLimiterRelease   = load("ratelimiter.release")
	RateLimiterSet       = load("ratelimiter.set")
	RateLimiterTake      = load("ratelimiter.take")
	RateLimiterTrySet    = load("ratelimiter.tryset")
	RateLimiterUndo      = load("ratelimiter.undo")
)
