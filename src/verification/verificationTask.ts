import { Channel } from "../threads/channel.ts";
import type { ThreadTask } from "../threads/threadTask.ts";
import type { JobFunctions } from "../threads/workerSlot.ts";
import { checkBody } from "./checkBody.ts";
import type { Finding } from "./findings.ts";
import type { VerificationJob } from "./verifyThreads.ts";

const verify = ({ body, checks }: VerificationJob): readonly Finding[] => {
  const findings = checkBody(body, checks);
  // An idle thread collects no garbage, and a body may have 150 MB.
  if (body.buffer instanceof ArrayBuffer) {
    body.buffer.transfer(0);
  }
  return findings;
};

/** The code of a thread that verifies responses. */
export const verificationTask: ThreadTask = (port) => {
  new Channel<Record<string, never>, JobFunctions>(port, { run: (job) => verify(job as VerificationJob) });
};
