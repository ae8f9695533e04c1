package redlatch.peer;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.List;

/** One request of the test, with the defaults of its optional fields. */
record Request(JsonObject json) {
    long id() {
        return number("id", 0);
    }

    String op() {
        return text("op", "");
    }

    /** The logical thread; ops that name none share one. */
    String thread() {
        return text("thread", "main");
    }

    /** Which of the process's Redisson clients is meant. */
    String client() {
        return text("client", "main");
    }

    String kind() {
        return text("kind", "lock");
    }

    String name() {
        String name = text("name", "");
        if (name.isEmpty()) {
            throw new IllegalArgumentException("op " + op() + " needs a name");
        }
        return name;
    }

    /** The locks that a lock is made of: each names its client, kind and name. */
    List<Request> members() {
        List<Request> all = new ArrayList<>();
        JsonElement v = json.get("members");
        if (v != null && v.isJsonArray()) {
            v.getAsJsonArray().forEach(e -> all.add(new Request(e.getAsJsonObject())));
        }
        return all;
    }

    /** What a lock is made of, besides its name, as text. */
    String parts() {
        return json.get("members") + "\0" + json.get("values");
    }

    String text(String field, String otherwise) {
        JsonElement v = json.get(field);
        return v == null || v.isJsonNull() ? otherwise : v.getAsString();
    }

    long number(String field, long otherwise) {
        JsonElement v = json.get(field);
        return v == null || v.isJsonNull() ? otherwise : v.getAsLong();
    }

    boolean flag(String field) {
        JsonElement v = json.get(field);
        return v != null && !v.isJsonNull() && v.getAsBoolean();
    }

    List<String> texts(String field) {
        List<String> all = new ArrayList<>();
        JsonElement v = json.get(field);
        if (v != null && v.isJsonArray()) {
            v.getAsJsonArray().forEach(e -> all.add(e.getAsString()));
        }
        return all;
    }
}
