package redlatch.peer;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.io.IOException;
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
 * "control" (a lock of the same kind that nobody else wants, which one more thread locks and unlocks meanwhile),
 * "writeEvery" (of kind "read": each n-th round of a thread takes the write lock of that name; 0 is never), "page" and
 * "who" (see Page: the file, and the number of the first thread).
 *
 * <p>The answer: "counts" per thread, their sum "ops", "elapsedMs", and the waits for the lock in microseconds,
 * "p50", "p99", "max"; with "control", the longest wait for that lock as "controlMax": what the machine and the
 * network made of a wait for nobody; with "page", how often two were inside at once as "overlaps", and the nanoseconds
 * from each start of an unlock to the return of the lock in another thread as "handOffs".
 */
final class Loop {
    private final RedissonClient client;
    private final Request req;
    private final long maxOps;
    private final long sectionNanos;
    private final long pauseNanos;
    private final RBucket<Long> counter;
    private final long writeEvery;
    private final Page page;
    private final AtomicLong started = new AtomicLong();

    private Loop(RedissonClient client, Request req) throws IOException {
        this.client = client;
        this.req = req;
        this.maxOps = req.number("maxOps", 0);
        this.sectionNanos = req.number("sectionUs", 0) * 1000;
        this.pauseNanos = req.number("pauseUs", 0) * 1000;
        String key = req.text("counter", "");
        this.counter = key.isEmpty() ? null : client.getBucket(key, LongCodec.INSTANCE);
        this.writeEvery = req.number("writeEvery", 0);
        String file = req.text("page", "");
        this.page = file.isEmpty() ? null : new Page(file);
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
            List<Future<Rounds>> running = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                String name = req.flag("perThreadKeys") ? req.name() + "-" + i : req.name();
                RLock lock = Kinds.lock(client, req.kind(), name);
                RLock write = writeEvery > 0 ? Kinds.lock(client, "write", name) : null;
                long who = req.number("who", 1) + i;
                running.add(
                        pool.submit(
                                () -> {
                                    ready.countDown();
                                    go.await();
                                    return loop(lock, write, who, System.nanoTime() + duration);
                                }));
            }
            ready.await();
            Control control = new Control(client, req);
            long start = System.nanoTime();
            go.countDown();
            List<Rounds> all = new ArrayList<>();
            for (Future<Rounds> f : running) {
                all.add(f.get());
            }
            JsonObject answer = report(all, System.nanoTime() - start);
            answer.addProperty("controlMax", control.end());
            return answer;
        } finally {
            pool.shutdownNow();
        }
    }

    private Rounds loop(RLock read, RLock write, long who, long end) {
        Rounds rounds = new Rounds();
        boolean shares = req.kind().equals("read");
        // Threads do not all write in the same round.
        for (long n = who; System.nanoTime() < end && (maxOps <= 0 || started.getAndIncrement() < maxOps); n++) {
            boolean writes = writeEvery > 0 && n % writeEvery == 0;
            RLock lock = writes ? write : read;
            long asked = System.nanoTime();
            lock.lock();
            rounds.waits.add(System.nanoTime() - asked);
            try {
                if (page != null) {
                    rounds.enter(page, who, shares && !writes);
                }
                section();
                if (page != null) {
                    page.leave(who, shares && !writes);
                }
            } finally {
                lock.unlock();
            }
            sleep(pauseNanos);
        }
        return rounds;
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

    private static JsonObject report(List<Rounds> threads, long elapsedNanos) {
        JsonArray counts = new JsonArray();
        JsonArray handOffs = new JsonArray();
        long overlaps = 0;
        Waits all = new Waits();
        for (Rounds r : threads) {
            counts.add(r.waits.size);
            overlaps += r.overlaps;
            for (int i = 0; i < r.waits.size; i++) {
                all.add(r.waits.nanos[i]);
            }
            for (int i = 0; i < r.handOffs.size; i++) {
                handOffs.add(r.handOffs.nanos[i]);
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
        answer.addProperty("overlaps", overlaps);
        answer.add("handOffs", handOffs);
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

    /** What one thread has seen. */
    private static final class Rounds {
        private final Waits waits = new Waits();
        private final Waits handOffs = new Waits();
        private long overlaps;

        void enter(Page page, long who, boolean shares) {
            long handedAt = page.enter(who, shares);
            if (handedAt == Page.OVERLAP) {
                overlaps++;
            } else if (handedAt != Page.NONE) {
                handOffs.add(Page.now() - handedAt);
            }
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
