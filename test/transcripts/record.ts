import { readdirSync, writeFileSync } from "node:fs";
import { changesChain, playTranscript, type Stage } from "./playTranscript.ts";
import {
  formatTranscript,
  matchesResponse,
  readTranscripts,
  sortKeys,
  TRANSCRIPTS,
  type Transcript,
  type TranscriptStep,
} from "./transcript.ts";
import { startForebayChain, startNodeChain } from "./transcriptChain.ts";

/**
 * `node test/transcripts/record.ts [METHOD...]` writes the responses of transcripts: those of forebay, and those of the node if
 * they differ. Compare both with the specification before you commit them, and write the reason of each difference above it.
 */

type ResponseStep = Extract<TranscriptStep, { readonly kind: "response" }>;

/** Plays the transcript, and returns the responses. An existing response stays, with its named values, if it matches. */
const responsesOf = async (
  steps: readonly TranscriptStep[],
  stage: Stage,
  expectedOf: (step: ResponseStep) => string,
): Promise<readonly string[]> => {
  const responses: string[] = [];
  await playTranscript(steps, stage, (expected, actual, bindings) => {
    const text = expected && expectedOf(expected);
    responses.push(text !== undefined && matchesResponse(actual, text, bindings) ? text : actual);
  });
  return responses;
};

const merge = (
  steps: readonly TranscriptStep[],
  ofForebay: readonly string[],
  ofNode: readonly string[],
): readonly TranscriptStep[] => {
  const merged: TranscriptStep[] = [];
  let at = 0;
  const endRequest = (): void => {
    const [text, node] = [ofForebay[at], ofNode[at]];
    if (text !== undefined && node !== undefined) {
      merged.push({ kind: "response", text, ...(sortKeys(text) !== sortKeys(node) && { node }) });
    }
    at++;
  };
  let isWaiting = false;
  for (const step of steps) {
    const endsRequest = isWaiting && step.kind !== "action";
    if (endsRequest) {
      endRequest();
      isWaiting = false;
    }
    if (step.kind !== "response") {
      merged.push(step);
    }
    isWaiting ||= step.kind === "request";
  }
  if (isWaiting) {
    endRequest();
  }
  return merged;
};

const record = async ({ file, steps }: Transcript, forebay: Stage, node: Stage): Promise<void> => {
  const ofForebay = await responsesOf(steps, forebay, ({ text }) => text);
  const ofNode = await responsesOf(steps, node, ({ text, node: ofNode = text }) => ofNode);
  writeFileSync(file, formatTranscript(merge(steps, ofForebay, ofNode)));
};

const folders = process.argv.slice(2);
const transcripts = (folders.length > 0 ? folders : readdirSync(TRANSCRIPTS))
  .filter((name) => name.includes("_"))
  .flatMap(readTranscripts);
const shared = await startForebayChain();
try {
  for (const transcript of transcripts) {
    if (!changesChain(transcript.steps)) {
      await record(transcript, shared, { url: shared.devnet.url, act: shared.act });
      continue;
    }
    const forebay = await startForebayChain();
    const node = await startNodeChain();
    await record(transcript, forebay, node).finally(() => Promise.all([forebay.close(), node.close()]));
  }
} finally {
  await shared.close();
}
