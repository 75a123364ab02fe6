import assert from "node:assert/strict";
import { test } from "node:test";
import { FairQueue } from "../../src/limits/fairQueue.ts";

interface Item {
  readonly name: string;
}

const fill = (queue: FairQueue<Item>, clientId: string, group: object, names: readonly string[]): readonly Item[] =>
  names.map((name) => {
    const item = { name };
    queue.add({ clientId, group }, item);
    return item;
  });

const takeAll = (queue: FairQueue<Item>): readonly string[] => {
  const names: string[] = [];
  for (let item = queue.take(); item !== undefined; item = queue.take()) {
    names.push(item.name);
  }
  return names;
};

test("clients take turns, and then the connections of a client", () => {
  const queue = new FairQueue<Item>();
  fill(queue, "a", {}, ["a1", "a2", "a3"]);
  fill(queue, "a", {}, ["A1", "A2"]);
  fill(queue, "b", {}, ["b1", "b2"]);
  assert.deepEqual(takeAll(queue), ["a1", "b1", "A1", "b2", "a2", "A2", "a3"]);
  assert.equal(queue.size, 0);
});

test("an item that no place fits keeps its position, and a removed item changes no turn", () => {
  const queue = new FairQueue<Item>();
  const group = {};
  const [first] = fill(queue, "a", group, ["a1", "a2"]);
  fill(queue, "b", {}, ["b1"]);
  assert.equal(queue.take(({ name }) => name !== "a1")?.name, "a2");
  assert.ok(first && queue.remove({ clientId: "a", group }, first));
  assert.ok(first && !queue.remove({ clientId: "a", group }, first));
  assert.deepEqual(takeAll(queue), ["b1"]);
});

test("a client with few items gets room from the client with the most, and that client gets none", () => {
  const queue = new FairQueue<Item>();
  fill(queue, "many", {}, ["m1", "m2", "m3"]);
  fill(queue, "few", {}, ["f1"]);
  assert.equal(queue.evictFor("many"), undefined);
  assert.equal(queue.evictFor("few")?.name, "m3");
  assert.equal(queue.evictFor("few"), undefined);
  assert.equal(queue.evictFor("new")?.name, "m2");
  assert.deepEqual(takeAll(queue), ["m1", "f1"]);
});

test("a client that was just served comes after one that is new, and neither starves the other", () => {
  const queue = new FairQueue<Item>();
  const connection = {};
  fill(queue, "many", connection, ["m0"]);
  assert.equal(queue.take()?.name, "m0");
  fill(queue, "many", connection, ["m1", "m2"]);
  const served: (string | undefined)[] = [];
  for (const name of ["n1", "n2"]) {
    fill(queue, "new", connection, [name]);
    served.push(queue.take()?.name, queue.take()?.name);
  }
  assert.deepEqual(served, ["n1", "m1", "n2", "m2"]);
});
