import { createProgress, type RequestProgress } from "../core/context.ts";
import type { RemoteRunBase } from "./chainProtocol.ts";

interface RunningRequest {
  readonly progress: RequestProgress;
  runs: number;
}

/** The requests of serving processes that execute here. The items of a batch share one, so that they share its limits. */
export class RunningRequests {
  readonly #requests = new Map<string, RunningRequest>();

  async run<T>(
    { requestId, stateReads }: Pick<RemoteRunBase, "requestId" | "stateReads">,
    task: (progress: RequestProgress) => Promise<T>,
  ): Promise<T> {
    const running = this.#requests.get(requestId) ?? { progress: createProgress(stateReads), runs: 0 };
    this.#requests.set(requestId, running);
    running.runs++;
    try {
      return await task(running.progress);
    } finally {
      running.runs--;
      if (running.runs === 0) {
        this.#requests.delete(requestId);
      }
    }
  }
}
