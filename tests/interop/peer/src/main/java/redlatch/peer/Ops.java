package redlatch.peer;

import com.google.gson.JsonObject;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** What a request can ask for. An op runs on the thread that it is meant for and throws what Redisson throws. */
final class Ops {
    /** One op: its answer has "ok" unless it failed, and whatever else it has to tell. */
    private interface Op {
        JsonObject run(Request req) throws Exception;
    }

    private final Clients clients = new Clients();

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
                    Map.entry("loopLock", req -> Loop.run(clients.get(req), req)));

    JsonObject run(Request req) throws Exception {
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

    private RLock lockOf(Request req) {
        RedissonClient c = clients.get(req);
        String key = String.join("\0", req.client(), req.kind(), req.name(), req.thread());
        return locks.computeIfAbsent(key, k -> Kinds.lock(c, req.kind(), req.name()));
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
