package redlatch.peer;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/**
 * Uses a semaphore or a latch in a loop by itself, as Loop does with locks.
 *
 * <p>Fields: "threads" (1), "durationMs" (1000); of a semaphore "permits" (1), how many it is made with, "sectionUs"
 * (time asleep with a permit) and "page" (see Page).
 *
 * <p>The answer: "counts" and "elapsedMs". Of a semaphore the counts are the acquisitions by thread, and "overlaps" is
 * how often more were inside than it has permits. Of a latch there is one count, the rounds; "handOffs" has for each
 * the nanoseconds from the call that counts down to the return of the last of all threads, and "overlaps" is how many
 * returned before.
 */
final class SyncLoop {
    private final RedissonClient client;
    private final Request req;
    private final int threads;
    private final long durationNanos;

    private SyncLoop(RedissonClient client, Request req) {
        this.client = client;
        this.req = req;
        this.threads = (int) req.number("threads", 1);
        this.durationNanos = req.number("durationMs", 1000) * 1_000_000;
    }

    static JsonObject semaphore(RedissonClient client, Request req) throws Exception {
        return new SyncLoop(client, req).semaphore();
    }

    static JsonObject latch(RedissonClient client, Request req) throws Exception {
        return new SyncLoop(client, req).latch();
    }

    private JsonObject semaphore() throws Exception {
        RSemaphore semaphore = client.getSemaphore(req.name());
        int permits = (int) req.number("permits", 1);
        semaphore.trySetPermits(permits);
        long section = req.number("sectionUs", 0) * 1000;
        String file = req.text("page", "");
        Page page = file.isEmpty() ? null : new Page(file);
        AtomicInteger overlaps = new AtomicInteger();
        CountDownLatch ready = new CountDownLatch(threads);
        CountDownLatch go = new CountDownLatch(1);
        Callable<Long> loop =
                () -> {
                    ready.countDown();
                    go.await();
                    long end = System.nanoTime() + durationNanos;
                    long rounds = 0;
                    for (; System.nanoTime() < end; rounds++) {
                        semaphore.acquire();
                        try {
                            if (page != null && !page.enterOneOf(permits)) {
                                overlaps.incrementAndGet();
                            }
                            sleep(section);
                            if (page != null) {
                                page.leave(0, true);
                            }
                        } finally {
                            semaphore.release();
                        }
                    }
                    return rounds;
                };
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            List<Future<Long>> running = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                running.add(pool.submit(loop));
            }
            ready.await();
            long start = System.nanoTime();
            go.countDown();
            JsonArray counts = new JsonArray();
            for (Future<Long> f : running) {
                counts.add(f.get());
            }
            return answer(counts, System.nanoTime() - start, overlaps.get(), new JsonArray());
        } finally {
            pool.shutdownNow();
        }
    }

    private JsonObject latch() throws Exception {
        RCountDownLatch latch = client.getCountDownLatch(req.name());
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            JsonArray times = new JsonArray();
            int early = 0;
            long start = System.nanoTime();
            do {
                latch.trySetCount(1);
                AtomicInteger called = new AtomicInteger();
                AtomicInteger away = new AtomicInteger(threads);
                List<Future<Long>> returned = new ArrayList<>();
                for (int i = 0; i < threads; i++) {
                    returned.add(
                            pool.submit(
                                    () -> {
                                        called.incrementAndGet();
                                        latch.await();
                                        long now = System.nanoTime();
                                        away.decrementAndGet();
                                        return now;
                                    }));
                }
                while (called.get() < threads) {
                    sleep(1_000_000);
                }
                idle();
                early += threads - away.get();
                long asked = System.nanoTime();
                latch.countDown();
                long last = asked;
                for (Future<Long> f : returned) {
                    last = Math.max(last, f.get());
                }
                times.add(last - asked);
            } while (System.nanoTime() - start < durationNanos);
            JsonArray rounds = new JsonArray();
            rounds.add(times.size());
            return answer(rounds, System.nanoTime() - start, early, times);
        } finally {
            pool.shutdownNow();
        }
    }

    /** Returns when this process has next to nothing to do: whoever is to wait waits. Has the limits of fanout.go. */
    private static void idle() {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        for (int i = 0; i < 50; i++) {
            long before = system.getProcessCpuTime();
            sleep(100_000_000);
            if (system.getProcessCpuTime() - before <= 10_000_000) {
                return;
            }
        }
    }

    private static void sleep(long nanos) {
        long end = System.nanoTime() + nanos;
        for (long left = nanos; left > 0; left = end - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }

    private static JsonObject answer(JsonArray counts, long elapsedNanos, int overlaps, JsonArray handOffs) {
        JsonObject answer = new JsonObject();
        answer.addProperty("ok", true);
        answer.add("counts", counts);
        answer.addProperty("elapsedMs", elapsedNanos / 1_000_000);
        answer.addProperty("overlaps", overlaps);
        answer.add("handOffs", handOffs);
        return answer;
    }
}
