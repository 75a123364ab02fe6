import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { filterMethods } from "../../src/methods/filterMethods.ts";
import { table } from "../../src/methods/table.ts";
import { changesChain, type OnResponse, playTranscript } from "../transcripts/playTranscript.ts";
import { matchesResponse, readTranscripts, sortKeys, TRANSCRIPTS, type Transcript } from "../transcripts/transcript.ts";
import { startForebayChain, startNodeChain, type TranscriptChain } from "../transcripts/transcriptChain.ts";

/** Folders of other transcripts have no underscore in their name. */
const transcripts = readdirSync(TRANSCRIPTS)
  .filter((name) => name.includes("_"))
  .flatMap(readTranscripts);

/** Compares with forebay's response, byte for byte. */
const isForebay: OnResponse = (expected, actual, bindings) => {
  assert.ok(expected, actual);
  assert.ok(matchesResponse(actual, expected.text, bindings), `${actual}\nexpected: ${expected.text}`);
};

/** Compares with the response of the node, which may have another order of members. */
const isNode: OnResponse = (expected, actual, bindings) => {
  assert.ok(expected, actual);
  const text = expected.node ?? expected.text;
  assert.ok(matchesResponse(sortKeys(actual), sortKeys(text), bindings), `${actual}\nexpected of the node: ${text}`);
};

describe("transcripts that do not change the chain", () => {
  let chain: TranscriptChain;
  before(async () => {
    chain = await startForebayChain();
  });
  after(async () => {
    await chain?.close();
  });
  for (const { name, steps } of transcripts.filter((each) => !changesChain(each.steps))) {
    test(name, async () => {
      await playTranscript(steps, chain, isForebay);
      await playTranscript(steps, { url: chain.devnet.url, act: chain.act }, isNode);
    });
  }
});

const playOn = async ({ steps }: Transcript, chain: TranscriptChain, onResponse: OnResponse): Promise<void> => {
  try {
    await playTranscript(steps, chain, onResponse);
  } finally {
    await chain.close();
  }
};

for (const transcript of transcripts.filter(({ steps }) => changesChain(steps))) {
  test(transcript.name, async () => {
    await Promise.all([
      startForebayChain().then((chain) => playOn(transcript, chain, isForebay)),
      startNodeChain().then((chain) => playOn(transcript, chain, isNode)),
    ]);
  });
}

test("each method with logic of its own has transcripts", () => {
  const ofFilters = filterMethods.map(({ name }) => name);
  const expected = table
    .filter(({ name, retention, atPending }) => {
      const isComputed = ["computed", "constant", "final", "logs"].includes(retention);
      const hasFile = existsSync(join(import.meta.dirname, `../../src/methods/${name}.ts`));
      return atPending === "view" || isComputed || hasFile || ofFilters.includes(name);
    })
    .map(({ name }) => name);
  const folders = readdirSync(TRANSCRIPTS);
  assert.deepEqual(
    expected.filter((name) => !folders.includes(name)),
    [],
  );
});

test("each response that differs from the node's has a comment above it that gives the reason", () => {
  for (const { name, steps } of transcripts) {
    let isExplained = false;
    for (const step of steps) {
      isExplained ||= step.kind === "comment";
      assert.ok(step.kind !== "response" || step.node === undefined || isExplained, name);
    }
  }
});
