package redlatch.peer;

import com.google.gson.JsonObject;
import java.lang.management.ManagementFactory;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntFunction;
import org.redisson.api.RFuture;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/**
 * Holds "n" locks, which the watchdog renews. Each has a thread id of its own, and no thread: the calls are asynchronous,
 * up to 128 at a time.
 *
 * <p>The answer of take: by how many bytes the heap has grown, after a collection, as "heap", the growth of the number of
 * threads as "threads", and the locks that were not to be had as "failed"; "ms" is without the collections. That of drop:
 * the locks that could not be released as "failed".
 */
final class Hoard {
    private static final int AT_ONCE = 128;

    private RLock[] held = {};

    JsonObject take(RedissonClient client, Request req) throws InterruptedException {
        held = new RLock[(int) req.number("n", 1)];
        long heap = heap();
        int threads = threads();
        long start = System.nanoTime();
        int failed =
                each(
                        i -> {
                            held[i] = client.getLock(req.name() + ":" + i);
                            return held[i].lockAsync(i + 1L);
                        });
        JsonObject answer = new JsonObject();
        answer.addProperty("ms", (System.nanoTime() - start) / 1_000_000);
        answer.addProperty("heap", heap() - heap);
        answer.addProperty("threads", threads() - threads);
        answer.addProperty("failed", failed);
        return answer;
    }

    JsonObject drop() throws InterruptedException {
        JsonObject answer = new JsonObject();
        answer.addProperty("failed", each(i -> held[i].unlockAsync(i + 1L)));
        held = new RLock[0];
        return answer;
    }

    /** Calls f for each lock, and returns how many of these calls fail. */
    private int each(IntFunction<RFuture<Void>> f) throws InterruptedException {
        Semaphore free = new Semaphore(AT_ONCE);
        AtomicInteger failed = new AtomicInteger();
        for (int i = 0; i < held.length; i++) {
            free.acquire();
            f.apply(i)
                    .whenComplete(
                            (ok, e) -> {
                                if (e != null) {
                                    failed.incrementAndGet();
                                }
                                free.release();
                            });
        }
        free.acquire(AT_ONCE);
        return failed.get();
    }

    /** The bytes that are in use. What a first collection only finds out to be unused goes with the second. */
    private static long heap() {
        System.gc();
        System.gc();
        Runtime r = Runtime.getRuntime();
        return r.totalMemory() - r.freeMemory();
    }

    private static int threads() {
        return ManagementFactory.getThreadMXBean().getThreadCount();
    }
}
