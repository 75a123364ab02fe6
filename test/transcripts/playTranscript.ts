import assert from "node:assert/strict";
import { type Bindings, bindRequest, type TranscriptStep } from "./transcript.ts";

/** Where a transcript is played: a JSON-RPC server, and the chain behind it. */
export interface Stage {
  readonly url: string;
  act(action: string): Promise<void>;
}

type ResponseStep = Extract<TranscriptStep, { readonly kind: "response" }>;

/** Called with each response in order. It may bind named values for the requests that follow. */
export type OnResponse = (expected: ResponseStep | undefined, actual: string, bindings: Bindings) => void;

/** The mode of forebay's view, if the response depends on it: a node has none. In another mode a node would answer. */
const LIVE_MODES: readonly (string | null)[] = [null, "live"];

const post = async (url: string, body: string): Promise<string> => {
  const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  const mode = response.headers.get("x-forebay-pending");
  assert.ok(LIVE_MODES.includes(mode), `${mode}: ${body}`);
  return (await response.text()).trim();
};

/** Sends the requests of a transcript one after the other, and runs its actions in between. */
export const playTranscript = async (
  steps: readonly TranscriptStep[],
  { url, act }: Stage,
  onResponse: OnResponse,
): Promise<void> => {
  const bindings: Bindings = new Map();
  let waiting: Promise<string> | undefined;
  const endRequest = async (expected?: ResponseStep): Promise<void> => {
    if (waiting !== undefined) {
      const actual = await waiting;
      waiting = undefined;
      onResponse(expected, actual, bindings);
    }
  };
  for (const step of steps) {
    if (step.kind === "request") {
      await endRequest();
      waiting = post(url, bindRequest(step.text, bindings));
      // A failure is thrown at the step that expects the response.
      waiting.catch(() => undefined);
    } else if (step.kind === "action") {
      await act(step.text);
    } else if (step.kind === "response") {
      await endRequest(step);
    }
  }
  await endRequest();
};

/** Whether a transcript changes the chain, so that it needs a chain of its own. */
export const changesChain = (steps: readonly TranscriptStep[]): boolean => steps.some(({ kind }) => kind === "action");
