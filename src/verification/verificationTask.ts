import type { WorkerTask } from "../threads/startTask.ts";
import { checkBody } from "./checkBody.ts";
import type { FromVerifier, ToVerifier } from "./verifyMessages.ts";

const verify = ({ id, body, checks }: ToVerifier): FromVerifier => {
  try {
    return { kind: "done", id, findings: checkBody(body, checks), body };
  } catch (error) {
    return { kind: "failed", id, message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
};

/** The code of a thread that verifies responses. */
export const verificationTask: WorkerTask = (port) => {
  port.on("message", (message: ToVerifier) => {
    const verified = verify(message);
    port.postMessage(verified, verified.kind === "done" ? [verified.body.buffer] : []);
  });
};
