import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Hash } from "../../../src/ethereum/hex.ts";
import { createPendingBlock } from "../../support/builders/pendingBlock.ts";
import { createSubscriptionServer } from "../../support/servers/subscriptionServer.ts";
import { LOGS_A_FLASHBLOCK, PERSONS, personTopic, TOKEN, TRANSFER, timeTopic } from "./subscribersShape.ts";

/** The server of the long run `subscribers`: emits flashblocks on request, and reports its memory. */
setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

const { port, pending, telemetry } = await createSubscriptionServer();
/** Number of logs that were sent to each person. Each log contains its number. */
const counts = Array.from({ length: PERSONS }, () => 0);
let blocks = 0;
let next = 0;

const numberTopic = (value: number): Hash => `0x${value.toString(16).padStart(64, "0")}`;

const emit = (): void => {
  blocks++;
  const time = timeTopic(performance.timeOrigin + performance.now());
  const transactions = Array.from({ length: LOGS_A_FLASHBLOCK }, (_, at) => {
    const person = next++ % PERSONS;
    counts[person] = (counts[person] ?? 0) + 1;
    const topics = [TRANSFER, time, personTopic(person), numberTopic(counts[person] ?? 0)];
    return { name: `${blocks}-${at}`, logs: [{ address: TOKEN, topics }] };
  });
  const block = createPendingBlock(BigInt(10 + blocks), 1, transactions);
  pending.emit({
    extended: [{ block, fromTransaction: 0, toTransaction: transactions.length, kind: "transactions" }],
  });
};

let timer: NodeJS.Timeout | undefined;
process.on("message", async (message: { readonly ask: "memory" | "start" | "stop"; readonly everyMs?: number }) => {
  if (message.ask === "start") {
    timer = setInterval(emit, message.everyMs);
  }
  if (message.ask === "stop") {
    clearInterval(timer);
    const slowClosed = (await telemetry.metrics.slowClosed.get()).values[0]?.value ?? 0;
    process.send?.({ counts, slowClosed });
  }
  if (message.ask === "memory") {
    collect();
    const { rss, heapUsed, external } = process.memoryUsage();
    process.send?.({ residentBytes: rss, usedBytes: heapUsed + external });
  }
});
process.on("disconnect", () => process.exit());
process.send?.(port);
