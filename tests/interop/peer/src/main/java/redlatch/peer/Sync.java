package redlatch.peer;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RSemaphore;
import org.redisson.api.RateIntervalUnit;
import org.redisson.api.RateLimiterConfig;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;

/**
 * Ops of semaphores, permits with leases, latches and rate limiters. An op is "type.method". Fields: "n" (how many),
 * "ids" (of permits), "waitMs" (of what waits; without it, or 0, it waits without limit, or tries once), "leaseMs" (0:
 * for ever), and of a rate "n", "intervalMs", "perClient" and "keepAliveMs". What only newer versions of Redisson have
 * is looked up when it is asked for, as in Kinds.
 */
final class Sync {
    private interface Op {
        JsonObject run(RedissonClient client, Request req) throws Exception;
    }

    private static final Map<String, Op> OPS =
            Map.ofEntries(
                    Map.entry("semaphore.acquire", (c, r) -> done(() -> semaphore(c, r).acquire(n(r)))),
                    Map.entry("semaphore.tryAcquire", Sync::tryAcquire),
                    Map.entry("semaphore.release", (c, r) -> done(() -> semaphore(c, r).release(n(r)))),
                    Map.entry("semaphore.releaseIfExists", Sync::releaseIfExists),
                    Map.entry("semaphore.trySetPermits", Sync::trySetPermits),
                    Map.entry("semaphore.addPermits", (c, r) -> done(() -> semaphore(c, r).addPermits(n(r)))),
                    Map.entry("semaphore.drain", (c, r) -> count(semaphore(c, r).drainPermits())),
                    Map.entry("semaphore.available", (c, r) -> count(semaphore(c, r).availablePermits())),
                    Map.entry("semaphore.delete", (c, r) -> ok(semaphore(c, r).delete())),
                    Map.entry("permits.acquire", Sync::acquirePermits),
                    Map.entry("permits.tryAcquire", Sync::tryAcquirePermits),
                    Map.entry("permits.release", Sync::releasePermits),
                    Map.entry("permits.tryRelease", Sync::tryReleasePermits),
                    Map.entry("permits.extend", Sync::extendPermit),
                    Map.entry("permits.leaseLeft", Sync::leaseLeft),
                    Map.entry("permits.trySetPermits", (c, r) -> ok(permits(c, r).trySetPermits(n(r)))),
                    Map.entry("permits.setPermits", Sync::setPermits),
                    Map.entry("permits.addPermits", (c, r) -> done(() -> permits(c, r).addPermits(n(r)))),
                    Map.entry("permits.available", (c, r) -> count(permits(c, r).availablePermits())),
                    Map.entry("permits.acquired", (c, r) -> count((Integer) newer(permits(c, r), "acquiredPermits", List.of()))),
                    Map.entry("permits.permits", (c, r) -> count((Integer) newer(permits(c, r), "getPermits", List.of()))),
                    Map.entry("permits.delete", (c, r) -> ok(permits(c, r).delete())),
                    Map.entry("latch.await", Sync::await),
                    Map.entry("latch.countDown", (c, r) -> done(() -> latch(c, r).countDown())),
                    Map.entry("latch.trySetCount", (c, r) -> ok(latch(c, r).trySetCount(n(r)))),
                    Map.entry("latch.count", (c, r) -> count(latch(c, r).getCount())),
                    Map.entry("latch.delete", (c, r) -> ok(latch(c, r).delete())),
                    Map.entry("rate.acquire", (c, r) -> done(() -> rate(c, r).acquire(n(r)))),
                    Map.entry("rate.tryAcquire", Sync::tryAcquireRate),
                    Map.entry("rate.release", Sync::releaseRate),
                    Map.entry("rate.trySetRate", Sync::trySetRate),
                    Map.entry("rate.setRateKeeping", Sync::setRateKeeping),
                    Map.entry("rate.updateRateAnew", (c, r) -> ok((Boolean) changeRate(c, r, "updateRate", false))),
                    Map.entry("rate.setRate", Sync::setRate),
                    Map.entry("rate.updateRate", Sync::updateRate),
                    Map.entry("rate.config", Sync::config),
                    Map.entry("rate.available", (c, r) -> count(rate(c, r).availablePermits())),
                    Map.entry("rate.delete", (c, r) -> ok(rate(c, r).delete())));

    private Sync() {}

    static boolean has(String op) {
        return OPS.containsKey(op);
    }

    static JsonObject run(RedissonClient client, Request req) throws Exception {
        return OPS.get(req.op()).run(client, req);
    }

    private static RSemaphore semaphore(RedissonClient c, Request r) {
        return c.getSemaphore(r.name());
    }

    private static RPermitExpirableSemaphore permits(RedissonClient c, Request r) {
        return c.getPermitExpirableSemaphore(r.name());
    }

    private static RCountDownLatch latch(RedissonClient c, Request r) {
        return c.getCountDownLatch(r.name());
    }

    private static RRateLimiter rate(RedissonClient c, Request r) {
        return c.getRateLimiter(r.name());
    }

    private static JsonObject tryAcquire(RedissonClient c, Request r) throws InterruptedException {
        long wait = wait(r);
        if (wait == 0) {
            return ok(semaphore(c, r).tryAcquire(n(r)));
        }
        return ok(semaphore(c, r).tryAcquire(n(r), wait, TimeUnit.MILLISECONDS));
    }

    private static JsonObject releaseIfExists(RedissonClient c, Request r) {
        return ok((Boolean) newer(semaphore(c, r), "releaseIfExists", List.of(int.class), n(r)));
    }

    /** A "leaseMs" is the TTL of the semaphore. */
    private static JsonObject trySetPermits(RedissonClient c, Request r) {
        if (lease(r) < 0) {
            return ok(semaphore(c, r).trySetPermits(n(r)));
        }
        List<Class<?>> takes = List.of(int.class, Duration.class);
        Duration ttl = Duration.ofMillis(lease(r));
        return ok((Boolean) newer(semaphore(c, r), "trySetPermits", takes, n(r), ttl));
    }

    private static JsonObject acquirePermits(RedissonClient c, Request r) throws InterruptedException {
        RPermitExpirableSemaphore s = permits(c, r);
        if (n(r) > 1) {
            List<Class<?>> takes = List.of(int.class, long.class, TimeUnit.class);
            return ids((List<?>) newer(s, "acquire", takes, n(r), lease(r), TimeUnit.MILLISECONDS));
        }
        return ids(List.of(lease(r) < 0 ? s.acquire() : s.acquire(lease(r), TimeUnit.MILLISECONDS)));
    }

    /** Its answer is not ok if the permits were not to be had. */
    private static JsonObject tryAcquirePermits(RedissonClient c, Request r) throws InterruptedException {
        RPermitExpirableSemaphore s = permits(c, r);
        if (n(r) > 1) {
            List<Class<?>> takes = List.of(int.class, long.class, long.class, TimeUnit.class);
            return ids((List<?>) newer(s, "tryAcquire", takes, n(r), wait(r), lease(r), TimeUnit.MILLISECONDS));
        }
        String id = s.tryAcquire(wait(r), lease(r), TimeUnit.MILLISECONDS);
        return ids(id == null ? List.of() : List.of(id));
    }

    private static JsonObject releasePermits(RedissonClient c, Request r) throws InterruptedException {
        List<String> ids = r.texts("ids");
        if (ids.size() > 1) {
            return done(() -> newer(permits(c, r), "release", List.of(List.class), ids));
        }
        return done(() -> permits(c, r).release(ids.get(0)));
    }

    private static JsonObject tryReleasePermits(RedissonClient c, Request r) {
        List<String> ids = r.texts("ids");
        if (ids.size() > 1) {
            return count((Integer) newer(permits(c, r), "tryRelease", List.of(List.class), ids));
        }
        return count(permits(c, r).tryRelease(ids.get(0)) ? 1 : 0);
    }

    private static JsonObject extendPermit(RedissonClient c, Request r) {
        return ok(permits(c, r).updateLeaseTime(r.texts("ids").get(0), lease(r), TimeUnit.MILLISECONDS));
    }

    private static JsonObject leaseLeft(RedissonClient c, Request r) {
        return count((Long) newer(permits(c, r), "getLeaseTime", List.of(String.class), r.texts("ids").get(0)));
    }

    private static JsonObject setPermits(RedissonClient c, Request r) throws InterruptedException {
        return done(() -> newer(permits(c, r), "setPermits", List.of(int.class), n(r)));
    }

    private static JsonObject await(RedissonClient c, Request r) throws InterruptedException {
        if (wait(r) == 0) {
            return done(() -> latch(c, r).await());
        }
        return ok(latch(c, r).await(wait(r), TimeUnit.MILLISECONDS));
    }

    private static JsonObject tryAcquireRate(RedissonClient c, Request r) {
        if (wait(r) == 0) {
            return ok(rate(c, r).tryAcquire(n(r)));
        }
        return ok(rate(c, r).tryAcquire(n(r), wait(r), TimeUnit.MILLISECONDS));
    }

    private static JsonObject releaseRate(RedissonClient c, Request r) throws InterruptedException {
        return done(() -> newer(rate(c, r), "release", List.of(long.class), (long) n(r)));
    }

    private static final List<Class<?>> TAKES_RATE =
            List.of(RateType.class, long.class, Duration.class, Duration.class);

    @SuppressWarnings("deprecation") // what both versions have
    private static JsonObject trySetRate(RedissonClient c, Request r) {
        if (keepAlive(r).isZero()) {
            return ok(rate(c, r).trySetRate(type(r), n(r), interval(r).toMillis(), RateIntervalUnit.MILLISECONDS));
        }
        return ok((Boolean) newer(rate(c, r), "trySetRate", TAKES_RATE, type(r), n(r), interval(r), keepAlive(r)));
    }

    @SuppressWarnings("deprecation")
    private static JsonObject setRate(RedissonClient c, Request r) throws InterruptedException {
        if (keepAlive(r).isZero()) {
            return done(
                    () -> rate(c, r).setRate(type(r), n(r), interval(r).toMillis(), RateIntervalUnit.MILLISECONDS));
        }
        return done(() -> newer(rate(c, r), "setRate", TAKES_RATE, type(r), n(r), interval(r), keepAlive(r)));
    }

    private static JsonObject setRateKeeping(RedissonClient c, Request r) throws ClassNotFoundException {
        changeRate(c, r, "setRate", true);
        return ok(true);
    }

    private static JsonObject updateRate(RedissonClient c, Request r) throws ClassNotFoundException {
        return ok((Boolean) changeRate(c, r, "updateRate", true));
    }

    /** Changes the rate by arguments, of which one says whether the state is kept. */
    private static Object changeRate(RedissonClient c, Request r, String method, boolean keepState)
            throws ClassNotFoundException {
        Class<?> type = Class.forName("org.redisson.api.ratelimiter.RateLimiterArgs");
        List<Class<?>> takes = List.of(RateType.class, long.class, Duration.class);
        Object args = Kinds.call(null, type, "of", takes, type(r), (long) n(r), interval(r));
        Kinds.call(args, type, "keepAliveTime", List.of(Duration.class), keepAlive(r));
        Kinds.call(args, type, "keepState", List.of(boolean.class), keepState);
        return newer(rate(c, r), method, List.of(type), args);
    }

    private static JsonObject config(RedissonClient c, Request r) {
        RateLimiterConfig config = rate(c, r).getConfig();
        JsonObject answer = count(config.getRate());
        answer.addProperty("intervalMs", config.getRateInterval());
        answer.addProperty("perClient", config.getRateType() == RateType.PER_CLIENT);
        return answer;
    }

    private static int n(Request r) {
        return (int) r.number("n", 0);
    }

    private static long wait(Request r) {
        return r.number("waitMs", 0);
    }

    /** Redisson's -1 is for ever. */
    private static long lease(Request r) {
        return r.number("leaseMs", -1);
    }

    private static RateType type(Request r) {
        return r.flag("perClient") ? RateType.PER_CLIENT : RateType.OVERALL;
    }

    private static Duration interval(Request r) {
        return Duration.ofMillis(r.number("intervalMs", 0));
    }

    private static Duration keepAlive(Request r) {
        return Duration.ofMillis(r.number("keepAliveMs", 0));
    }

    /** Calls a method that only newer versions of Redisson have. */
    private static Object newer(Object on, String method, List<Class<?>> takes, Object... args) {
        return Kinds.call(on, on.getClass(), method, takes, args);
    }

    private interface Call {
        void run() throws InterruptedException;
    }

    private static JsonObject done(Call call) throws InterruptedException {
        call.run();
        return ok(true);
    }

    private static JsonObject ok(boolean value) {
        JsonObject answer = new JsonObject();
        answer.addProperty("ok", value);
        return answer;
    }

    private static JsonObject count(long value) {
        JsonObject answer = ok(true);
        answer.addProperty("count", value);
        return answer;
    }

    private static JsonObject ids(List<?> ids) {
        JsonObject answer = ok(!ids.isEmpty());
        JsonArray all = new JsonArray();
        ids.forEach(id -> all.add((String) id));
        answer.add("ids", all);
        return answer;
    }
}
