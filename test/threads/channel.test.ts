import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { MessageChannel } from "node:worker_threads";
import { MustForwardError } from "../../src/core/mustForwardError.ts";
import { CODES, RpcError } from "../../src/jsonrpc/rpcError.ts";
import { Channel, Moved, type RemoteCall } from "../../src/threads/channel.ts";

type Functions = {
  readonly echo: (value: unknown) => unknown;
  readonly create: (body: null, call: RemoteCall) => unknown;
  readonly spin: (body: null, call: RemoteCall) => unknown;
};

/** Two channels over one port each. */
const createPair = (t: TestContext, functions: Partial<Functions>) => {
  const { port1, port2 } = new MessageChannel();
  t.after(() => port1.close());
  const caller = new Channel<Functions, Record<string, never>>(port1, {});
  new Channel<Record<string, never>, Functions>(port2, { echo: (value) => value, ...functions });
  return caller;
};

const uncloneable = (): void => undefined;

test("a call whose body cannot be sent is rejected, and the other messages of its turn are sent", async (t) => {
  const caller = createPair(t, {});
  const before = caller.call("echo", 1);
  const bad = assert.rejects(caller.call("echo", uncloneable), { message: /could not be cloned/ });
  const after = caller.call("echo", 2);
  await bad;
  assert.deepEqual(await Promise.all([before, after]), [1, 2]);
});

test("an error that cannot be sent rejects its call with the reason", async (t) => {
  const caller = createPair(t, {
    create: () => {
      throw new RpcError(CODES.SERVER, "the data is not plain", { data: uncloneable });
    },
  });
  await assert.rejects(caller.call("create", null), { message: /could not be cloned/ });
});

test("a result or report that cannot be sent rejects its call, and the other results arrive", async (t) => {
  const caller = createPair(t, { create: () => uncloneable, spin: (_, { report }) => report(uncloneable) });
  const bad = assert.rejects(caller.call("create", null), { message: /could not be cloned/ });
  const good = caller.call("echo", 1);
  await bad;
  assert.equal(await good, 1);
  await assert.rejects(caller.call("spin", null), { message: /could not be cloned/ });
});

test("a notification that cannot be sent throws", async (t) => {
  const caller = createPair(t, {});
  assert.throws(() => caller.notify("echo", uncloneable), /could not be cloned/);
  assert.equal(await caller.call("echo", 1), 1);
});

test("a handler of reports that throws rejects its call, and later messages are received", async (t) => {
  const caller = createPair(t, { create: (_, { report }) => report(1) });
  const onReport = (): never => {
    throw new Error("the handler fails");
  };
  const bad = assert.rejects(caller.call("create", null, { onReport }), { message: "the handler fails" });
  const good = caller.call("echo", 1);
  await bad;
  assert.equal(await good, 1);
});

test("an abort is known before its message, and the end of the call is reported", async (t) => {
  const aborting = new AbortController();
  const seen: boolean[] = [];
  const caller = createPair(t, {
    spin: (_, call) => {
      seen.push(call.isAborted());
      aborting.abort(new Error("given up"));
      seen.push(call.isAborted(), call.signal.aborted);
    },
  });
  const ended = Promise.withResolvers<void>();
  const options = { signal: aborting.signal, onEnd: ended.resolve };
  await assert.rejects(caller.call("spin", null, options), { message: "given up" });
  await ended.promise;
  assert.deepEqual(seen, [false, true, false]);
  assert.equal(await caller.call("echo", 1), 1);
});

test("a call asks its caller for values, and ends with the error of the caller if it has none", async (t) => {
  const caller = createPair(t, {
    echo: (value) => new Moved(value, []),
    spin: async (_, call) => [await call.ask("first"), await call.ask("second")],
  });
  const onAsk = async (value: unknown) => `value of ${value}`;
  assert.deepEqual(await caller.call("spin", null, { onAsk }), ["value of first", "value of second"]);
  const error = new Error("no value");
  await assert.rejects(caller.call("spin", null, { onAsk: () => Promise.reject(error) }), (thrown) => thrown === error);
  assert.equal(await caller.call("echo", 1), 1);
});

test("an error for a client arrives with its fields, and a call that is open when its side ends is rejected", async (t) => {
  const caller = createPair(t, {
    echo: () => new Promise(() => undefined),
    create: () => {
      throw new RpcError(CODES.SERVER, "reverted", { data: "0x01", status: 503 });
    },
    spin: () => {
      throw new MustForwardError("no rules");
    },
  });
  await assert.rejects(caller.call("create", null), { code: CODES.SERVER, data: "0x01", status: 503 });
  await assert.rejects(caller.call("spin", null), MustForwardError);
  const open = caller.call("echo", 1);
  caller.close(new Error("the thread has ended"));
  await assert.rejects(open, { message: "the thread has ended" });
});
