package redlatch.peer;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * A real Redisson that a test drives: one JSON request per line on standard input, one JSON answer per line on
 * standard output, logs on standard error.
 *
 * <p>A request names its logical thread; each is one Java thread for the life of the process, because Redisson's
 * owner of a lock is "client id : thread id". Requests of one logical thread run in order, all others at the same
 * time, so answers come in any order and carry the request's id.
 *
 * <p>The process ends with the op "exit" or with the end of its input, without releasing anything.
 */
public final class Main {
    private final PrintStream out;
    private final Ops ops = new Ops();
    private final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();

    private Main(PrintStream out) {
        this.out = out;
    }

    public static void main(String[] args) throws Exception {
        // A library that prints must not corrupt the answers.
        PrintStream out =
                new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        new Main(out).serve(new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)));
        Runtime.getRuntime().halt(0);
    }

    private void serve(BufferedReader in) throws Exception {
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.isBlank()) {
                continue;
            }
            Request req = new Request(JsonParser.parseString(line).getAsJsonObject());
            if (req.op().equals("exit")) {
                answer(req, new JsonObject());
                return;
            }
            thread(req.thread()).execute(() -> run(req));
        }
    }

    private ExecutorService thread(String name) {
        return threads.computeIfAbsent(
                name,
                n ->
                        Executors.newSingleThreadExecutor(
                                task -> {
                                    Thread t = new Thread(task, "logical-" + n);
                                    t.setDaemon(true);
                                    return t;
                                }));
    }

    private void run(Request req) {
        long start = System.nanoTime();
        try {
            JsonObject result = ops.run(req);
            if (!result.has("ms")) {
                result.addProperty("ms", (System.nanoTime() - start) / 1_000_000);
            }
            answer(req, result);
        } catch (Throwable e) {
            fail(req, e);
        }
    }

    private void answer(Request req, JsonObject result) {
        result.addProperty("id", req.id());
        print(result);
    }

    private void fail(Request req, Throwable e) {
        while ((e instanceof ExecutionException || e instanceof CompletionException) && e.getCause() != null) {
            e = e.getCause();
        }
        JsonObject result = new JsonObject();
        result.addProperty("id", req.id());
        result.addProperty("err", e.getClass().getSimpleName());
        result.addProperty("msg", String.valueOf(e.getMessage()));
        print(result);
    }

    private void print(JsonObject answer) {
        synchronized (out) {
            out.println(answer);
        }
    }
}
