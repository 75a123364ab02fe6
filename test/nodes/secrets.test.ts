import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { pino } from "pino";
import { NodeError } from "../../src/core/node.ts";
import { Upstreams } from "../../src/heads/upstreams.ts";
import { createContext, createRequest } from "../support/builders/request.ts";
import { silent } from "../support/builders/silent.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";

const KEY = "k3y0123456789abcdef";
const PASSWORD = "pa55w0rd";
const HEADER = "h3ader-s3cret";

test("credentials are sent to the node only, and occur in no log, error or metric", async () => {
  const fake = await createFakeNode();
  const lines: string[] = [];
  const stream = new PassThrough();
  stream.on("data", (line) => lines.push(String(line)));
  const telemetry = { ...silent(), log: pino({ level: "trace" }, stream) };
  const url = fake.url.replace("http://", `http://user:${PASSWORD}@`);
  const upstreams = new Upstreams(
    {
      chain: "test",
      breaker: { failures: 1, openMs: 10_000 },
      nodes: [
        { url: `${url}v2/${KEY}?apikey=${KEY}`, wsUrl: `${fake.wsUrl}${KEY}`, headers: { "x-token": HEADER } },
        { url: `http://user:${PASSWORD}@127.0.0.1:1/${KEY}`, wsUrl: `ws://user:${PASSWORD}@127.0.0.1:1/${KEY}` },
      ],
    },
    telemetry,
  );
  await upstreams.ready;
  const sent = fake.requests.at(-1);
  assert.equal(sent?.path, `/v2/${KEY}?apikey=${KEY}`);
  assert.equal(sent?.headers.authorization, `Basic ${Buffer.from(`user:${PASSWORD}`).toString("base64")}`);
  assert.equal(sent?.headers["x-token"], HEADER);

  const seen: string[] = [];
  const fail = async (): Promise<void> => {
    try {
      await upstreams.request(createRequest({ method: "eth_getBalance", params: ["0x", "0x1"] }), createContext());
      assert.fail("it was answered");
    } catch (error) {
      assert.ok(error instanceof NodeError);
      seen.push(error.message, error.stack ?? "", JSON.stringify(error), String(error.cause), String(error.data));
      seen.push(Buffer.from(error.text ?? []).toString());
    }
  };
  const message = `bad request to /v2/${KEY} by ${PASSWORD} with ${HEADER}`;
  fake.faults.error = { code: -32_000, message, data: { url: `${url}v2/${KEY}` } };
  await fail();
  for (const answer of [500, 401, "reset"] as const) {
    fake.faults.answer = answer;
    await fail();
  }
  seen.push(...lines, await telemetry.registry.metrics());
  await upstreams.close();
  await fake.close();
  assert.ok(lines.length > 0);
  for (const secret of [KEY, PASSWORD, HEADER, Buffer.from(`user:${PASSWORD}`).toString("base64")]) {
    assert.ok(!seen.some((text) => text.includes(secret)), `${secret} was disclosed`);
  }
});
