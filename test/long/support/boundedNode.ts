import { setTimeout as sleep } from "node:timers/promises";
import { type Front, forwardTo, startFront } from "../../support/fakes/front.ts";

/** Calls that the node executes at once. */
const PLACES = 4;
const CALL_MS = 20;

/** Starts a front of a node that executes a bounded number of calls a second, each item of a batch for itself. */
export const startBoundedNode = (url: string): Promise<Front> => {
  let free = PLACES;
  const waiting: (() => void)[] = [];
  const execute = async (): Promise<void> => {
    if (free > 0) {
      free--;
    } else {
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
    await sleep(CALL_MS);
    const next = waiting.shift();
    if (next === undefined) {
      free++;
    } else {
      next();
    }
  };
  return startFront(async (body) => {
    const parsed: unknown = JSON.parse(body);
    await Promise.all(Array.isArray(parsed) ? parsed.map(execute) : [execute()]);
    return forwardTo(url, body);
  });
};
