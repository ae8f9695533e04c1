package redlatch.peer;

import java.lang.reflect.InvocationTargetException;
import java.util.Map;
import org.redisson.api.RLock;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RedissonClient;

/**
 * The kinds of lock, by the names that requests use. A kind is the method of RedissonClient that makes it, looked
 * up when it is asked for, since this program is built with Redisson versions that lack some of them.
 */
final class Kinds {
    private static final Map<String, String> METHODS =
            Map.of(
                    "lock", "getLock",
                    "nonreentrant", "getNonReentrantLock",
                    "fair", "getFairLock",
                    "nonreentrantfair", "getNonReentrantFairLock",
                    "fenced", "getFencedLock",
                    "spin", "getSpinLock",
                    "read", "getReadWriteLock",
                    "write", "getReadWriteLock");

    private Kinds() {}

    /** A new lock object, as an application would make one; Redisson's state is by client and thread. */
    static RLock lock(RedissonClient client, String kind, String name) {
        String method = METHODS.get(kind);
        if (method == null) {
            throw new IllegalArgumentException("unknown kind \"" + kind + "\"");
        }
        Object made = call(client, method, name);
        return switch (kind) {
            case "read" -> ((RReadWriteLock) made).readLock();
            case "write" -> ((RReadWriteLock) made).writeLock();
            default -> (RLock) made;
        };
    }

    private static Object call(RedissonClient client, String method, String name) {
        try {
            return RedissonClient.class.getMethod(method, String.class).invoke(client, name);
        } catch (NoSuchMethodException e) {
            throw new UnsupportedOperationException("this Redisson has no " + method);
        } catch (InvocationTargetException e) {
            throw new IllegalStateException(e.getCause());
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
    }
}
