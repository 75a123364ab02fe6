import assert from "node:assert/strict";
import { test } from "node:test";
import { deserialize, serialize } from "node:v8";
import { MessageChannel } from "node:worker_threads";
import { MustForwardError } from "../../src/core/mustForwardError.ts";
import { CODES, RpcError } from "../../src/jsonrpc/rpcError.ts";
import { Channel, Moved, type RemoteCall } from "../../src/threads/channel.ts";

type Functions = {
  readonly echo: (value: unknown) => unknown;
  readonly create: (body: null) => unknown;
};

/** Two channels with the serialization of processes, and the errors of each side. */
const createPair = () => {
  const callerErrors: unknown[] = [];
  const offererErrors: unknown[] = [];
  const post = (to: () => Channel<Functions, Functions>) => (messages: readonly object[]) => {
    const bytes = serialize(messages);
    setImmediate(() => to().receive(deserialize(bytes)));
  };
  const caller: Channel<Functions, Functions> = new Channel({
    post: post(() => offerer),
    onError: (error) => callerErrors.push(error),
  });
  const offerer: Channel<Functions, Functions> = new Channel({
    post: post(() => caller),
    onError: (error) => offererErrors.push(error),
  });
  return { caller, offerer, callerErrors, offererErrors };
};

const uncloneable = (): void => undefined;

test("a call whose body cannot be sent is rejected, and the other messages of its turn are sent", async () => {
  const { caller, offerer } = createPair();
  offerer.offer({ echo: (value) => value });
  const before = caller.call("echo", 1);
  const bad = assert.rejects(caller.call("echo", uncloneable), { message: /could not be cloned/ });
  const after = caller.call("echo", 2);
  await bad;
  assert.deepEqual(await Promise.all([before, after]), [1, 2]);
});

test("an error that cannot be sent rejects its call with the reason", async () => {
  const { caller, offerer, offererErrors } = createPair();
  offerer.offer({
    create: () => {
      throw new RpcError(CODES.SERVER, "the data is not plain", { data: uncloneable });
    },
  });
  await assert.rejects(caller.call("create", null), { message: /could not be cloned/ });
  assert.deepEqual(offererErrors, []);
});

test("a result or report that cannot be sent rejects its call, and the other results arrive", async () => {
  const { caller, offerer, offererErrors } = createPair();
  offerer.offer({ echo: (value) => value, create: () => uncloneable });
  const bad = assert.rejects(caller.call("create", null), { message: /could not be cloned/ });
  const good = caller.call("echo", 1);
  await bad;
  assert.equal(await good, 1);
  offerer.offer({
    create: ((_body: null, { report }: { report(value: unknown): void }) => report(uncloneable)) as () => unknown,
  });
  await assert.rejects(caller.call("create", null), { message: /could not be cloned/ });
  assert.deepEqual(offererErrors, []);
});

test("a notification that cannot be sent is an error of the channel", async () => {
  const { caller, offerer, callerErrors } = createPair();
  offerer.offer({ echo: (value) => value });
  caller.notify("echo", uncloneable);
  assert.equal(await caller.call("echo", 1), 1);
  assert.match(String(callerErrors), /could not be cloned/);
});

test("a handler of reports that throws rejects its call, and the rest of the batch is received", async () => {
  const { caller, offerer } = createPair();
  offerer.offer({
    echo: (value) => value,
    create: ((_body: null, { report }: { report(value: unknown): void }) => report(1)) as () => unknown,
  });
  const onReport = (): never => {
    throw new Error("the handler fails");
  };
  const bad = assert.rejects(caller.call("create", null, { onReport }), { message: "the handler fails" });
  const good = caller.call("echo", 1);
  await bad;
  assert.equal(await good, 1);
});

test("a message that cannot be read is an error of the channel, and the rest of the batch is received", async () => {
  const { caller, callerErrors } = createPair();
  const open = caller.call("echo", 1);
  caller.receive([null, { kind: "result", id: 1, value: 2 }]);
  assert.equal(await open, 2);
  assert.equal(callerErrors.length, 1);
});

/** Two channels between threads, over one port each. */
const createPortPair = (functions: Functions & { readonly spin: (body: null, call: RemoteCall) => unknown }) => {
  const { port1, port2 } = new MessageChannel();
  const caller = Channel.onPort<typeof functions, Record<string, never>>(port1, {});
  Channel.onPort<Record<string, never>, typeof functions>(port2, functions);
  return { caller, close: () => port1.close() };
};

test("between threads an abort is known before its message, and the end of the call is reported", async (t) => {
  const aborting = new AbortController();
  const seen: boolean[] = [];
  const { caller, close } = createPortPair({
    echo: (value) => value,
    create: () => undefined,
    spin: (_, call) => {
      seen.push(call.isAborted());
      aborting.abort(new Error("given up"));
      seen.push(call.isAborted(), call.signal.aborted);
    },
  });
  t.after(close);
  const ended = Promise.withResolvers<void>();
  const options = { signal: aborting.signal, onEnd: ended.resolve };
  await assert.rejects(caller.call("spin", null, options), { message: "given up" });
  await ended.promise;
  assert.deepEqual(seen, [false, true, false]);
  assert.equal(await caller.call("echo", 1), 1);
});

test("a call asks its caller for values, and ends with the error of the caller if it has none", async (t) => {
  const { caller, close } = createPortPair({
    echo: (value) => new Moved(value, []),
    create: () => undefined,
    spin: async (_, call) => [await call.ask("first"), await call.ask("second")],
  });
  t.after(close);
  const onAsk = async (value: unknown) => `value of ${value}`;
  assert.deepEqual(await caller.call("spin", null, { onAsk }), ["value of first", "value of second"]);
  const error = new Error("no value");
  await assert.rejects(caller.call("spin", null, { onAsk: () => Promise.reject(error) }), (thrown) => thrown === error);
  assert.equal(await caller.call("echo", 1), 1);
});

test("an error for a client arrives with its fields, and a call that is open when its side ends is rejected", async (t) => {
  const { caller, close } = createPortPair({
    echo: () => new Promise(() => undefined),
    create: () => {
      throw new RpcError(CODES.SERVER, "reverted", { data: "0x01", status: 503 });
    },
    spin: () => {
      throw new MustForwardError("no rules");
    },
  });
  t.after(close);
  await assert.rejects(caller.call("create", null), { code: CODES.SERVER, data: "0x01", status: 503 });
  await assert.rejects(caller.call("spin", null), MustForwardError);
  const open = caller.call("echo", 1);
  caller.close(new Error("the thread has ended"));
  await assert.rejects(open, { message: "the thread has ended" });
});
