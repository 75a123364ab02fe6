import { Channel, Moved } from "../threads/channel.ts";
import type { ThreadTask } from "../threads/threadTask.ts";
import type { JobFunctions } from "../threads/workerSlot.ts";
import { checkBody } from "./checkBody.ts";
import type { VerificationJob, VerificationOutput } from "./verifyThreads.ts";

const verify = ({ body, checks }: VerificationJob): VerificationOutput =>
  new Moved({ findings: checkBody(body, checks), body }, [body.buffer]);

/** The code of a thread that verifies responses. */
export const verificationTask: ThreadTask = (port) => {
  Channel.onPort<Record<string, never>, JobFunctions>(port, { run: (job) => verify(job as VerificationJob) });
};
