import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Agent, request } from "undici";
import { MALFORMED_REQUESTS } from "../support/builders/malformedRequests.ts";
import { growth, type LongOptions, MAX_GROWTH } from "./support/memory.ts";

const REQUESTS = 100_000;
const CONCURRENCY = 16;
/** The heap first grows to its working size. The report covers the time after that. */
const WARM_UP = 20_000;
const SAMPLE_EVERY = 500;

/** V8 may double the young generation at any time, a step of 16 MB that is no leak. It therefore starts at its final size. */
const FIXED_YOUNG_GENERATION = ["--min-semi-space-size=16", "--max-semi-space-size=16"];

const residentKilobytes = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? Number.NaN);

/** Sends malformed requests. Each must get its exact response, and memory must stay flat. */
export const long = async ({ seconds }: LongOptions) => {
  const server = fork(fileURLToPath(new URL("support/malformedServer.ts", import.meta.url)), {
    execArgv: FIXED_YOUNG_GENERATION,
  });
  const [port] = await once(server, "message");
  const url = `http://127.0.0.1:${port}/`;
  const dispatcher = new Agent({ connections: CONCURRENCY });
  const endMs = seconds === undefined ? Number.POSITIVE_INFINITY : performance.now() + seconds * 1000;
  const samples: number[] = [];
  let sent = 0;
  let wrong = 0;

  const sendOne = async (): Promise<void> => {
    const asked = MALFORMED_REQUESTS[sent++ % MALFORMED_REQUESTS.length];
    if (asked === undefined) {
      return;
    }
    const headers = { "content-type": asked.contentType ?? "application/json" };
    const { statusCode, body } = await request(url, { method: "POST", headers, body: asked.body, dispatcher });
    if (statusCode !== asked.status || (await body.text()) !== asked.answer) {
      wrong++;
    }
  };
  const work = async (): Promise<void> => {
    while (sent < REQUESTS + WARM_UP && performance.now() < endMs) {
      await sendOne();
      if (sent % SAMPLE_EVERY === 0 && (sent > WARM_UP || seconds !== undefined)) {
        samples.push(residentKilobytes(server.pid ?? 0));
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));

  const alive = server.exitCode === null && server.signalCode === null;
  const grown = growth(samples);
  await dispatcher.close();
  server.disconnect();
  // A short run only shows that every request is answered, because memory still grows at first.
  const flat = seconds !== undefined || grown <= MAX_GROWTH;
  return {
    name: "malformed",
    passed: alive && wrong === 0 && flat,
    sent,
    wrong,
    alive,
    growth: grown,
    megabytes: (samples.at(-1) ?? 0) / 1024,
  };
};
