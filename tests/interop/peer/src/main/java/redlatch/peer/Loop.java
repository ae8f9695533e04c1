package redlatch.peer;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.redisson.api.RBucket;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.LongCodec;

/**
 * Locks and unlocks in a loop by itself, so that the pipe between the test and this process does not enter the
 * figures.
 *
 * <p>Fields: "threads" (1), "durationMs" (1000), "maxOps" (of all threads together; 0 is no bound), "sectionUs"
 * (time asleep inside the lock), "pauseUs" (time asleep outside of it), "perThreadKeys" (thread i uses name-i),
 * "counter" (a key that each section reads, and writes plus one: an update is lost when two sections overlap),
 * "control" (a lock of the same kind that nobody else wants, which one more thread locks and unlocks meanwhile).
 *
 * <p>The answer: "counts" per thread, their sum "ops", "elapsedMs", and the waits for the lock in microseconds,
 * "p50", "p99", "max"; with "control", the longest wait for that lock as "controlMax": what the machine and the
 * network made of a wait for nobody.
 */
final class Loop {
    private final RedissonClient client;
    private final Request req;
    private final long maxOps;
    private final long sectionNanos;
    private final long pauseNanos;
    private final RBucket<Long> counter;
    private final AtomicLong started = new AtomicLong();

    private Loop(RedissonClient client, Request req) {
        this.client = client;
        this.req = req;
        this.maxOps = req.number("maxOps", 0);
        this.sectionNanos = req.number("sectionUs", 0) * 1000;
        this.pauseNanos = req.number("pauseUs", 0) * 1000;
        String key = req.text("counter", "");
        this.counter = key.isEmpty() ? null : client.getBucket(key, LongCodec.INSTANCE);
    }

    static JsonObject run(RedissonClient client, Request req) throws Exception {
        return new Loop(client, req).run();
    }

    private JsonObject run() throws Exception {
        int threads = (int) req.number("threads", 1);
        long duration = req.number("durationMs", 1000) * 1_000_000;
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            CountDownLatch ready = new CountDownLatch(threads);
            CountDownLatch go = new CountDownLatch(1);
            List<Future<Waits>> running = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                String name = req.flag("perThreadKeys") ? req.name() + "-" + i : req.name();
                RLock lock = Kinds.lock(client, req.kind(), name);
                running.add(
                        pool.submit(
                                () -> {
                                    ready.countDown();
                                    go.await();
                                    return loop(lock, System.nanoTime() + duration);
                                }));
            }
            ready.await();
            Control control = new Control(client, req);
            long start = System.nanoTime();
            go.countDown();
            List<Waits> all = new ArrayList<>();
            for (Future<Waits> f : running) {
                all.add(f.get());
            }
            JsonObject answer = report(all, System.nanoTime() - start);
            answer.addProperty("controlMax", control.end());
            return answer;
        } finally {
            pool.shutdownNow();
        }
    }

    private Waits loop(RLock lock, long end) {
        Waits waits = new Waits();
        while (System.nanoTime() < end && (maxOps <= 0 || started.getAndIncrement() < maxOps)) {
            long asked = System.nanoTime();
            lock.lock();
            waits.add(System.nanoTime() - asked);
            try {
                section();
            } finally {
                lock.unlock();
            }
            sleep(pauseNanos);
        }
        return waits;
    }

    private void section() {
        Long before = counter == null ? null : counter.get();
        sleep(sectionNanos);
        if (counter != null) {
            counter.set(before == null ? 1 : before + 1);
        }
    }

    private static void sleep(long nanos) {
        long end = System.nanoTime() + nanos;
        for (long left = nanos; left > 0; left = end - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }

    private static JsonObject report(List<Waits> threads, long elapsedNanos) {
        JsonArray counts = new JsonArray();
        Waits all = new Waits();
        for (Waits w : threads) {
            counts.add(w.size);
            for (int i = 0; i < w.size; i++) {
                all.add(w.nanos[i]);
            }
        }
        Arrays.sort(all.nanos, 0, all.size);
        JsonObject answer = new JsonObject();
        answer.addProperty("ok", true);
        answer.add("counts", counts);
        answer.addProperty("ops", all.size);
        answer.addProperty("elapsedMs", elapsedNanos / 1_000_000);
        answer.addProperty("p50", all.percentile(0.50));
        answer.addProperty("p99", all.percentile(0.99));
        answer.addProperty("max", all.percentile(1));
        return answer;
    }

    /** The thread of "control", if one is asked for. */
    private static final class Control {
        private final AtomicBoolean over = new AtomicBoolean();
        private final CompletableFuture<Long> max = new CompletableFuture<>();

        Control(RedissonClient client, Request req) {
            String name = req.text("control", "");
            if (name.isEmpty()) {
                max.complete(0L);
                return;
            }
            RLock lock = Kinds.lock(client, req.kind(), name);
            Thread t = new Thread(() -> loop(lock), "control");
            t.setDaemon(true);
            t.start();
        }

        private void loop(RLock lock) {
            try {
                long longest = 0;
                while (!over.get()) {
                    long asked = System.nanoTime();
                    lock.lock();
                    longest = Math.max(longest, System.nanoTime() - asked);
                    lock.unlock();
                    sleep(1_000_000);
                }
                max.complete(longest / 1000);
            } catch (Throwable e) {
                max.completeExceptionally(e);
            }
        }

        /** Ends the thread and returns its longest wait in microseconds. */
        long end() throws Exception {
            over.set(true);
            return max.get();
        }
    }

    /** A growing list of primitive times. */
    private static final class Waits {
        private long[] nanos = new long[1024];
        private int size;

        void add(long n) {
            if (size == nanos.length) {
                nanos = Arrays.copyOf(nanos, 2 * size);
            }
            nanos[size++] = n;
        }

        /** The p-th part of the sorted list by nearest rank, in microseconds; 0 of an empty one. */
        long percentile(double p) {
            if (size == 0) {
                return 0;
            }
            int rank = Math.max(1, (int) Math.ceil(p * size));
            return nanos[rank - 1] / 1000;
        }
    }
}
