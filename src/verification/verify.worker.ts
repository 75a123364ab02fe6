import { parentPort } from "node:worker_threads";
import { checkBody } from "./checkBody.ts";
import type { FromVerifier, ToVerifier } from "./verifyMessages.ts";

const port = parentPort;
if (port === null) throw new Error("answers are verified in a worker thread");

const run = ({ id, body, task }: ToVerifier): FromVerifier => {
  try {
    return { kind: "done", id, findings: checkBody(body, task), body };
  } catch (error) {
    return { kind: "failed", id, message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
};

port.on("message", (message: ToVerifier) => {
  const answer = run(message);
  port.postMessage(answer, answer.kind === "done" ? [answer.body.buffer] : []);
});
port.postMessage({ kind: "ready" } satisfies FromVerifier);
