import type { FindingKind } from "../judge/recorder.ts";
import type { WrongClass } from "../judge/wrongClass.ts";
import type { PromiseName } from "../promises.ts";
import type { Edit } from "./longFaults.ts";

/** A fault in forebay, and the finding or the class of wrong answers that the soak must report. Scenarios name the faults that they show. */
export interface SoakFault {
  readonly promise: PromiseName;
  readonly finding: FindingKind | WrongClass;
  readonly edits: readonly Edit[];
}

const NOTIFY = {
  file: "src/subscriptions/deliveries.ts",
  from: "subscriber.notify(message.render(idBytes), burst);",
} as const;

export const SOAK_FAULTS: Readonly<Record<string, SoakFault>> = {
  /** The key of a recent block has no hash, so that a response outlives a reorganisation. */
  staleHit: {
    promise: "reorganisations",
    finding: "wrong",
    edits: [
      {
        file: "src/core/retention.ts",
        from: "`${name}:${block.number}:${block.hash}`",
        to: "`${name}:${block.number}`",
      },
    ],
  },
  /** Logs of a replaced block are not removed. */
  orphanedLog: {
    promise: "subscriptions",
    finding: "orphaned",
    edits: [{ file: "src/subscriptions/sealedEvents.ts", from: "this.#sendLogs(block, true);", to: "" }],
  },
  /** The lower head of a node that lags is served. */
  headBack: {
    promise: "faults",
    finding: "headBack",
    edits: [
      {
        file: "src/heads/chainRecorder.ts",
        from: "if (isCanonicalIn(ring, announced.block)) {",
        to: "if (number < ring.latest.number && isCanonicalIn(ring, announced.block)) { canonical.extend(ring, { blocks: [{ block: ring.at(number), header: ring.header(number) }], joined: true }); }\nif (isCanonicalIn(ring, announced.block)) {",
      },
    ],
  },
  lostEvent: {
    promise: "subscriptions",
    finding: "lost",
    edits: [{ ...NOTIFY, to: `if (Math.random() > 0.1) { ${NOTIFY.from} }` }],
  },
  repeatedEvent: {
    promise: "subscriptions",
    finding: "repeated",
    edits: [{ ...NOTIFY, to: `${NOTIFY.from} if (Math.random() < 0.1) { ${NOTIFY.from} }` }],
  },
  /** Two chains share their keys. */
  otherChain: {
    promise: "bytes",
    finding: "wrong",
    edits: [
      {
        file: "src/cache/cacheEntry.ts",
        from: ":${name}.${chainId}:${genesisHash.slice(2, 18).toLowerCase()}:",
        to: ":",
      },
    ],
  },
  /** The state of `latest` is that of the block before. */
  oldState: {
    promise: "bytes",
    finding: "otherBlock",
    edits: [
      {
        file: "src/methods/blockParams.ts",
        from: "return resolveNumber(heads.latest.number, heads);",
        to: "return resolveNumber(heads.latest.number - 1n, heads);",
      },
    ],
  },
  lostLog: {
    promise: "logs",
    finding: "missingLogs",
    edits: [
      {
        file: "src/logs/mergeLogs.ts",
        from: "ordered.push(log);",
        to: "if (Math.random() >= 0.02) ordered.push(log);",
      },
    ],
  },
  nullReceipt: {
    promise: "bytes",
    finding: "nullForExisting",
    edits: [
      {
        file: "src/methods/handlers.ts",
        from: "(call, context) => handle({ chain, call, context }),",
        to: `async (call, context) => {
        const response = await handle({ chain, call, context });
        const isLost = call.method === "eth_getTransactionReceipt" && Math.random() < 0.2;
        return isLost ? { ...response, body: new TextEncoder().encode("null") } : response;
      },`,
      },
    ],
  },
  stepBack: {
    promise: "faults",
    finding: "headBack",
    edits: [
      {
        file: "src/methods/plainRead.ts",
        from: "body: formatJson(formatQuantity(number)),",
        to: "body: formatJson(formatQuantity(Math.random() < 0.1 ? number - 1n : number)),",
      },
    ],
  },
  /** The highest head of any node is served. */
  highestHead: {
    promise: "inventedHeads",
    finding: "forged",
    edits: [{ file: "src/heads/decideHead.ts", from: "Math.floor(voters / 2) + 1 :", to: "1 :" }],
  },
};
