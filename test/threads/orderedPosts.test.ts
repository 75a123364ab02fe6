import assert from "node:assert/strict";
import { test } from "node:test";
import { OrderedPosts } from "../../src/threads/orderedPosts.ts";

test("messages that are ready are sent at once", () => {
  const sent: string[] = [];
  const posts = new OrderedPosts<string>((message) => sent.push(message));
  posts.post("first");
  posts.post("second");
  assert.deepEqual(sent, ["first", "second"]);
});

test("messages behind one that is not ready are sent after it, in their order", async () => {
  const sent: string[] = [];
  const last = Promise.withResolvers<void>();
  const posts = new OrderedPosts<string>((message) => {
    sent.push(message);
    if (message === "fourth") {
      last.resolve();
    }
  });
  const slow = Promise.withResolvers<string>();
  posts.post("first");
  posts.post(slow.promise);
  posts.post("third");
  posts.post(Promise.resolve("fourth"));
  assert.deepEqual(sent, ["first"]);
  slow.resolve("second");
  await last.promise;
  assert.deepEqual(sent, ["first", "second", "third", "fourth"]);
});
