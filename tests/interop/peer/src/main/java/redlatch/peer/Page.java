package redlatch.peer;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.time.temporal.ChronoUnit;

/**
 * Memory that processes share, Java's and others, to see without Redis whether two holders are inside at once and how
 * long a lock takes from one to the next. Its layout is that of tests/bench/page.go.
 */
final class Page {
    /** What enter returns if the caller is not alone, and if the lock does not come from another one. */
    static final long OVERLAP = -1;

    static final long NONE = 0;

    private static final int INSIDE = 0;
    private static final int RELEASED_BY = 64;
    private static final int RELEASED_AT = 72;
    private static final int SIZE = 80;

    /** What one who shares with nobody adds to the count of those inside; one who shares adds 1. */
    private static final int ALONE = 1 << 16;

    private static final VarHandle INT = MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.nativeOrder());
    private static final VarHandle LONG = MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());

    // The machine's wall clock, as it was at the start and without its steps since.
    private static final long BOOT = ChronoUnit.NANOS.between(Instant.EPOCH, Instant.now()) - System.nanoTime();

    private final ByteBuffer memory;

    Page(String file) throws IOException {
        try (FileChannel f = FileChannel.open(Path.of(file), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            memory = f.map(FileChannel.MapMode.READ_WRITE, 0, SIZE);
        }
    }

    static long now() {
        return BOOT + System.nanoTime();
    }

    /** Called with the lock just taken; returns when another one than the caller started to unlock it. */
    long enter(long who, boolean shares) {
        if (shares) {
            return (int) INT.getAndAdd(memory, INSIDE, 1) < ALONE ? NONE : OVERLAP;
        }
        if ((int) INT.getAndAdd(memory, INSIDE, ALONE) != 0) {
            return OVERLAP;
        }
        return (long) LONG.getVolatile(memory, RELEASED_BY) == who ? NONE : (long) LONG.getVolatile(memory, RELEASED_AT);
    }

    /** Called with one of so many permits just taken; says whether there was one. Leave with shares. */
    boolean enterOneOf(int permits) {
        return (int) INT.getAndAdd(memory, INSIDE, 1) < permits;
    }

    /** Called right before unlocking. */
    void leave(long who, boolean shares) {
        if (!shares) {
            LONG.setVolatile(memory, RELEASED_BY, who);
            LONG.setVolatile(memory, RELEASED_AT, now());
        }
        INT.getAndAdd(memory, INSIDE, shares ? -1 : -ALONE);
    }
}
