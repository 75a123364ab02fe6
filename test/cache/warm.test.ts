import assert from "node:assert/strict";
import { test } from "node:test";
import { createWarm } from "../../src/cache/warm.ts";
import type { HeadChange } from "../../src/chain/heads.ts";
import { createTelemetry } from "../../src/telemetry.ts";
import { answerOf, blockOf, contextOf, countingSource, headsOf, questionOf } from "../support/question.ts";

const change: HeadChange = { heads: headsOf({ latest: 10 }), from: [], to: [blockOf(10)] };
const { log } = createTelemetry({ level: "silent" });

const requestsAfter = (askedAgoMs: number | undefined): number => {
  const source = countingSource(() => {
    if (source.requests === 1) throw new Error("the first fails, the second goes on");
    return answerOf("{}");
  });
  const warm = createWarm({
    source,
    questionsOf: ({ to }) => to.flatMap((block) => [1, 2].map(() => questionOf({ lifetime: "recent", block }))),
    contextOf: ({ heads }) => contextOf(heads),
    lastAskedMs: () => (askedAgoMs === undefined ? undefined : performance.now() - askedAgoMs),
    log,
  });
  warm(change);
  return source.requests;
};

test("a new head is fetched where latest was asked in the last 30 s", () => {
  assert.equal(requestsAfter(29_000), 2);
  assert.equal(requestsAfter(31_000), 0);
  assert.equal(requestsAfter(undefined), 0);
});
