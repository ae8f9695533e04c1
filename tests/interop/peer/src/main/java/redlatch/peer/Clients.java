package redlatch.peer;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.BaseConfig;
import org.redisson.config.BaseMasterSlaveServersConfig;
import org.redisson.config.ClusterServersConfig;
import org.redisson.config.Config;
import org.redisson.config.SentinelServersConfig;
import org.redisson.config.SingleServerConfig;

/** The Redisson clients of this process, each under the name that the test gave it. */
final class Clients {
    private final Map<String, RedissonClient> open = new ConcurrentHashMap<>();

    RedissonClient get(Request req) {
        RedissonClient c = open.get(req.client());
        if (c == null) {
            throw new IllegalStateException("no client \"" + req.client() + "\" is open");
        }
        return c;
    }

    /**
     * Connects as req asks: "url" for one server, "sentinels" (a list of urls) and "master" (what they call it), or
     * "cluster" (a list of urls) and optionally "sharded" (a ShardedSubscriptionMode, which not every version has). Also
     * optional are "watchdogMs", "clientName" (CLIENT SETNAME), "timeoutMs", "retryAttempts" and "idle" (how many
     * connections to a server to begin with). What is not given keeps Redisson's default, but for the codec: of all
     * locks only the one of a group of values uses it, and then programs that are not Java can only take part if values
     * are texts.
     */
    RedissonClient open(Request req) {
        Config config = new Config();
        config.setCodec(StringCodec.INSTANCE);
        long watchdog = req.number("watchdogMs", 0);
        if (watchdog > 0) {
            config.setLockWatchdogTimeout(watchdog);
        }
        if (!req.texts("cluster").isEmpty()) {
            cluster(req, config.useClusterServers());
        } else if (!req.texts("sentinels").isEmpty()) {
            SentinelServersConfig sentinels = config.useSentinelServers().setMasterName(req.text("master", ""));
            several(req, sentinels.addSentinelAddress(urls(req, "sentinels")));
        } else {
            SingleServerConfig server = config.useSingleServer().setAddress(req.text("url", ""));
            int idle = (int) req.number("idle", server.getConnectionMinimumIdleSize());
            common(req, server.setConnectionMinimumIdleSize(idle));
        }
        RedissonClient c = Redisson.create(config);
        if (open.putIfAbsent(req.client(), c) != null) {
            c.shutdown();
            throw new IllegalStateException("client \"" + req.client() + "\" is open already");
        }
        return c;
    }

    private static void cluster(Request req, ClusterServersConfig cluster) {
        String sharded = req.text("sharded", "");
        if (!sharded.isEmpty()) {
            Kinds.choose(cluster, "org.redisson.config.ShardedSubscriptionMode", sharded);
        }
        several(req, cluster.addNodeAddress(urls(req, "cluster")));
    }

    private static void several(Request req, BaseMasterSlaveServersConfig<?> servers) {
        int idle = (int) req.number("idle", servers.getMasterConnectionMinimumIdleSize());
        servers.setMasterConnectionMinimumIdleSize(idle).setSlaveConnectionMinimumIdleSize(idle);
        common(req, servers);
    }

    private static String[] urls(Request req, String field) {
        return req.texts(field).toArray(new String[0]);
    }

    private static void common(Request req, BaseConfig<?> base) {
        String name = req.text("clientName", "");
        if (!name.isEmpty()) {
            base.setClientName(name);
        }
        long timeout = req.number("timeoutMs", 0);
        if (timeout > 0) {
            base.setTimeout((int) timeout);
        }
        long attempts = req.number("retryAttempts", -1);
        if (attempts >= 0) {
            base.setRetryAttempts((int) attempts);
        }
    }

    void close(Request req) {
        get(req).shutdown();
        open.remove(req.client());
    }
}
