package redlatch.peer;

import com.google.gson.JsonObject;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RListMultimap;
import org.redisson.api.RLock;
import org.redisson.api.RMap;
import org.redisson.api.RSet;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/** What a request can ask for. An op runs on the thread that it is meant for and throws what Redisson throws. */
final class Ops {
    /** One op: its answer has "ok" unless it failed, and whatever else it has to tell. */
    private interface Op {
        JsonObject run(Request req) throws Exception;
    }

    private final Clients clients = new Clients();
    private final Hoard hoard = new Hoard();

    /**
     * Lock objects by client, kind, name and logical thread. One object serves all calls of a thread, as in an
     * application: a lock object remembers the lease of its last acquisition and restores it at a partial unlock.
     */
    private final Map<String, RLock> locks = new ConcurrentHashMap<>();

    private final Map<String, Op> ops =
            Map.ofEntries(
                    Map.entry("open", this::open),
                    Map.entry("close", this::close),
                    Map.entry("owner", this::owner),
                    Map.entry("lock", this::lock),
                    Map.entry("tryLock", this::tryLock),
                    Map.entry("unlock", this::unlock),
                    Map.entry("forceUnlock", req -> ok(lockOf(req).forceUnlock())),
                    Map.entry("isLocked", req -> ok(lockOf(req).isLocked())),
                    Map.entry("isHeldBy", req -> ok(lockOf(req).isHeldByCurrentThread())),
                    Map.entry("holdCount", req -> number("count", lockOf(req).getHoldCount())),
                    Map.entry("remainTTL", req -> number("ttl", lockOf(req).remainTimeToLive())),
                    Map.entry("lockAndGetToken", this::lockAndGetToken),
                    Map.entry("tryLockAndGetToken", this::tryLockAndGetToken),
                    Map.entry("getToken", req -> token(fenced(req, "getToken", List.of()))),
                    Map.entry("entryNames", this::entryNames),
                    Map.entry("hoard", req -> hoard.take(clients.get(req), req)),
                    Map.entry("drop", req -> hoard.drop()),
                    Map.entry("loopSemaphore", req -> SyncLoop.semaphore(clients.get(req), req)),
                    Map.entry("loopLatch", req -> SyncLoop.latch(clients.get(req), req)),
                    Map.entry("loopLock", req -> Loop.run(clients.get(req), req)));

    JsonObject run(Request req) throws Exception {
        if (Sync.has(req.op())) {
            return Sync.run(clients.get(req), req);
        }
        Op op = ops.get(req.op());
        if (op == null) {
            throw new IllegalArgumentException("unknown op \"" + req.op() + "\"");
        }
        return op.run(req);
    }

    private JsonObject open(Request req) {
        RedissonClient c = clients.open(req);
        JsonObject answer = ok(true);
        answer.addProperty("uuid", c.getId());
        answer.addProperty("version", Redisson.class.getPackage().getImplementationVersion());
        return answer;
    }

    private JsonObject close(Request req) {
        clients.close(req);
        locks.keySet().removeIf(key -> key.startsWith(req.client() + "\0"));
        return ok(true);
    }

    /** The names of what Redisson keeps about one entry of a map, a set and a multimap. */
    private JsonObject entryNames(Request req) {
        RedissonClient c = clients.get(req);
        String key = req.texts("values").get(0);
        RMap<String, String> map = c.getMap(req.name(), StringCodec.INSTANCE);
        RSet<String> set = c.getSet(req.name(), StringCodec.INSTANCE);
        RListMultimap<String, String> multimap = c.getListMultimap(req.name(), StringCodec.INSTANCE);
        JsonObject names = new JsonObject();
        names.addProperty("RMap.getLock", map.getLock(key).getName());
        names.addProperty("RMap.getFairLock", map.getFairLock(key).getName());
        names.addProperty("RMap.getReadWriteLock", map.getReadWriteLock(key).readLock().getName());
        names.addProperty("RMap.getSemaphore", map.getSemaphore(key).getName());
        names.addProperty("RMap.getPermitExpirableSemaphore", map.getPermitExpirableSemaphore(key).getName());
        names.addProperty("RMap.getCountDownLatch", map.getCountDownLatch(key).getName());
        names.addProperty("RSet.getLock", set.getLock(key).getName());
        names.addProperty("RListMultimap.getLock", multimap.getLock(key).getName());
        JsonObject answer = ok(true);
        answer.add("names", names);
        return answer;
    }

    /** The owner field that Redisson writes for this client and logical thread. */
    private JsonObject owner(Request req) {
        JsonObject answer = ok(true);
        answer.addProperty("owner", clients.get(req).getId() + ":" + Thread.currentThread().getId());
        return answer;
    }

    private JsonObject lock(Request req) {
        long lease = req.number("leaseMs", -1);
        if (lease > 0) {
            lockOf(req).lock(lease, TimeUnit.MILLISECONDS);
        } else {
            lockOf(req).lock();
        }
        return ok(true);
    }

    private JsonObject tryLock(Request req) throws InterruptedException {
        long wait = req.number("waitMs", 0);
        long lease = req.number("leaseMs", -1);
        if (wait <= 0 && lease <= 0) {
            return ok(lockOf(req).tryLock());
        }
        return ok(lockOf(req).tryLock(wait, lease, TimeUnit.MILLISECONDS));
    }

    private JsonObject unlock(Request req) {
        lockOf(req).unlock();
        return ok(true);
    }

    private JsonObject lockAndGetToken(Request req) {
        long lease = req.number("leaseMs", 0);
        if (lease <= 0) {
            return token(fenced(req, "lockAndGetToken", List.of()));
        }
        return token(fenced(req, "lockAndGetToken", List.of(long.class, TimeUnit.class), lease, TimeUnit.MILLISECONDS));
    }

    /** Its answer is not ok if the lock was not to be had. */
    private JsonObject tryLockAndGetToken(Request req) {
        long lease = req.number("leaseMs", 0);
        return token(
                fenced(
                        req,
                        "tryLockAndGetToken",
                        List.of(long.class, long.class, TimeUnit.class),
                        req.number("waitMs", 0),
                        lease > 0 ? lease : -1,
                        TimeUnit.MILLISECONDS));
    }

    /** Calls a method that only fenced locks have, and only Redisson 3.19 or newer. */
    private Object fenced(Request req, String method, List<Class<?>> takes, Object... args) {
        RLock lock = lockOf(req);
        return Kinds.call(lock, lock.getClass(), method, takes, args);
    }

    private static JsonObject token(Object token) {
        JsonObject answer = ok(token != null);
        answer.addProperty("token", (Long) token);
        return answer;
    }

    private RLock lockOf(Request req) {
        clients.get(req); // or a lock of a closed client would still answer
        String key = String.join("\0", req.client(), req.kind(), req.name(), req.thread(), req.parts());
        return locks.computeIfAbsent(key, k -> Kinds.lock(clients, req));
    }

    private static JsonObject ok(boolean value) {
        JsonObject answer = new JsonObject();
        answer.addProperty("ok", value);
        return answer;
    }

    private static JsonObject number(String field, long value) {
        JsonObject answer = ok(true);
        answer.addProperty(field, value);
        return answer;
    }
}
