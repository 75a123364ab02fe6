import assert from "node:assert/strict";
import { test } from "node:test";
import { deserialize, serialize } from "node:v8";
import { ProcessChannel } from "../../src/cluster/processChannel.ts";
import { CODES, RpcError } from "../../src/jsonrpc/rpcError.ts";

type Functions = {
  readonly echo: (value: unknown) => unknown;
  readonly create: (body: null) => unknown;
};

/** Two channels with the serialization of processes, and the errors of each side. */
const createPair = () => {
  const callerErrors: unknown[] = [];
  const offererErrors: unknown[] = [];
  const post = (to: () => ProcessChannel<Functions, Functions>) => (messages: readonly object[]) => {
    const bytes = serialize(messages);
    setImmediate(() => to().receive(deserialize(bytes)));
  };
  const caller: ProcessChannel<Functions, Functions> = new ProcessChannel(
    post(() => offerer),
    (error) => callerErrors.push(error),
  );
  const offerer: ProcessChannel<Functions, Functions> = new ProcessChannel(
    post(() => caller),
    (error) => offererErrors.push(error),
  );
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
