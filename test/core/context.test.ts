import assert from "node:assert/strict";
import { test } from "node:test";
import { Context, createProgress } from "../../src/core/context.ts";
import { LazySignal } from "../../src/core/lazySignal.ts";
import type { Span } from "../../src/core/trace.ts";
import { createHeads } from "../support/builders/heads.ts";
import { createInbound } from "../support/builders/request.ts";

const span = (): Span => ({ traceId: "0".repeat(32), child: span, count: () => 0, end: () => {} });

const inbound = createInbound({
  caller: { clientId: "client", connection: {}, charge: () => {}, authorize: () => undefined },
  received: { headers: {}, asked: { traceHeaders: { traceparent: "00-0-0-00" }, noCache: true }, requestId: "r-1" },
  memory: { holdCalls: () => true, hold: () => true, drop: () => {}, holdResponse: () => true },
  progress: { ...createProgress(), stateReads: 1 },
  lazySignal: new LazySignal(),
});

/** Every field and getter of a context, so that a new one is compared too. */
const fieldsOf = (context: Context): Record<string, unknown> => {
  const getters = Object.entries(Object.getOwnPropertyDescriptors(Context.prototype))
    .filter(([, { get }]) => get !== undefined)
    .map(([name]) => name);
  const names = [...Object.keys(context), ...getters];
  return Object.fromEntries(names.map((name) => [name, Reflect.get(context, name)]));
};

test("a derived context has every field of its request, and only the change differs", () => {
  const behind = { confirmations: 1, actual: { heads: createHeads({ latest: 3n }) } };
  const options = { bypassCache: true, needs: "proven" as const, span: span(), ending: new LazySignal(), behind };
  const context = new Context(inbound, { heads: createHeads({ latest: 1n }) }, 5, options);
  const fields = fieldsOf(context);
  for (const [name, value] of Object.entries(fields)) {
    assert.notEqual(value, undefined, `the test gives ${name} no value`);
  }
  assert.deepEqual(fieldsOf(context.with({})), fields);
  const ending = new LazySignal();
  const changes = {
    ...{ view: { heads: createHeads({ latest: 2n }) }, deadlineMs: 6 },
    ...{ bypassCache: false, needs: "stated", span: span() },
  };
  for (const [name, value] of Object.entries(changes)) {
    const derived = fieldsOf(context.with({ [name]: value }));
    assert.equal(derived[name], value);
    assert.deepEqual({ ...derived, [name]: fields[name] }, fields);
  }
  const { signal, lazySignal, ...same } = fieldsOf(context.with({ ending }));
  assert.deepEqual([signal, lazySignal], [ending.signal, ending]);
  assert.deepEqual({ ...same, signal: fields.signal, lazySignal: fields.lazySignal }, fields);
});

test("without confirmations, a context has the view of the chain, and all else of its request", () => {
  const view = { heads: createHeads({ latest: 1n }) };
  const behind = { confirmations: 1, actual: { heads: createHeads({ latest: 2n }) } };
  const options = { bypassCache: true, needs: "proven" as const, span: span(), ending: new LazySignal() };
  const context = new Context(inbound, view, 5, { ...options, behind });
  const expected = new Context(inbound, behind.actual, 5, options);
  assert.deepEqual(fieldsOf(context.withoutConfirmations()), fieldsOf(expected));
  assert.equal(expected.withoutConfirmations(), expected);
});

test("the context of a request needs no other options, and is ended by its request", () => {
  const context = new Context(inbound, { heads: createHeads({ latest: 1n }) }, 5);
  assert.deepEqual([context.bypassCache, context.span, context.lazySignal], [false, undefined, inbound.lazySignal]);
});
