package redlatch.peer;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.redisson.api.RLock;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RedissonClient;

/**
 * The kinds of lock, by the names that requests use. A kind is the method of RedissonClient that makes it, looked
 * up when it is asked for, since this program is built with Redisson versions that lack some of them: such a kind
 * answers with an UnsupportedOperationException.
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

    /**
     * The lock that a request is about. "multi" and "red" are made of the request's "members", each with a "client"
     * of its own; "group" locks the request's "values" within its name.
     */
    static RLock lock(Clients clients, Request req) {
        return switch (req.kind()) {
            case "multi" -> clients.get(req).getMultiLock(members(clients, req));
            case "red" -> red(clients.get(req), members(clients, req));
            case "group" -> group(clients.get(req), req);
            default -> lock(clients.get(req), req.kind(), req.name());
        };
    }

    /** A new lock object, as an application would make one; Redisson's state is by client and thread. */
    static RLock lock(RedissonClient client, String kind, String name) {
        String method = METHODS.get(kind);
        if (method == null) {
            throw new IllegalArgumentException("unknown kind \"" + kind + "\"");
        }
        Object made = call(client, RedissonClient.class, method, List.of(String.class), name);
        return switch (kind) {
            case "read" -> ((RReadWriteLock) made).readLock();
            case "write" -> ((RReadWriteLock) made).writeLock();
            default -> (RLock) made;
        };
    }

    private static RLock[] members(Clients clients, Request req) {
        List<RLock> all = new ArrayList<>();
        for (Request member : req.members()) {
            all.add(lock(clients, member));
        }
        return all.toArray(new RLock[0]);
    }

    @SuppressWarnings("deprecation") // it still ships, so it is still met
    private static RLock red(RedissonClient client, RLock[] members) {
        return client.getRedLock(members);
    }

    private static RLock group(RedissonClient client, Request req) {
        List<Object> values = new ArrayList<>(req.texts("values"));
        List<Class<?>> takes = List.of(String.class, Collection.class);
        return (RLock) call(client, RedissonClient.class, "getMultiLock", takes, req.name(), values);
    }

    /**
     * Calls what this version of Redisson may lack, and throws what the method throws.
     *
     * @throws UnsupportedOperationException if there is no such method
     */
    static Object call(Object on, Class<?> type, String method, List<Class<?>> takes, Object... args) {
        try {
            return type.getMethod(method, takes.toArray(new Class<?>[0])).invoke(on, args);
        } catch (NoSuchMethodException e) {
            String what = type.getSimpleName() + " has no " + method + takes;
            throw new UnsupportedOperationException("this Redisson's " + what);
        } catch (InvocationTargetException e) {
            throw Kinds.<RuntimeException>unchecked(e.getCause());
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
    }

    /**
     * Sets an option of a configuration that is an enum, which this version of Redisson may lack, and its setter.
     *
     * @throws UnsupportedOperationException if there is none
     */
    static void choose(Object config, String option, String value) {
        for (Method m : config.getClass().getMethods()) {
            Class<?>[] takes = m.getParameterTypes();
            if (!m.getName().startsWith("set") || takes.length != 1 || !takes[0].getName().equals(option)) {
                continue;
            }
            for (Object constant : takes[0].getEnumConstants()) {
                if (constant.toString().equals(value)) {
                    call(config, config.getClass(), m.getName(), List.of(takes[0]), constant);
                    return;
                }
            }
        }
        throw new UnsupportedOperationException("this Redisson has no " + option + " " + value);
    }

    /** Lets a caller throw what it cannot declare. */
    @SuppressWarnings("unchecked")
    private static <T extends Throwable> T unchecked(Throwable e) throws T {
        throw (T) e;
    }
}
