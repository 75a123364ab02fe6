import type { Edit } from "../support/plantEdits.ts";
import type { FindingKind } from "../world/judge/recorder.ts";

/** A fault in forebay, and the finding that the checker must report. */
export interface PlantedFault {
  readonly finding: FindingKind;
  /** The faults of the devnet that make it visible; without a name, all. */
  readonly faults: readonly string[];
  readonly edits: readonly Edit[];
}

const NOTIFY = {
  file: "src/subscriptions/deliveries.ts",
  from: "subscriber.notify(message.render(idBytes), burst);",
} as const;

const PLANTED_FAULTS = {
  /** The key of a recent block has no hash, so that a response outlives a reorganisation. */
  staleHit: {
    finding: "wrong",
    faults: ["reorganisation", "reorganisation of one block"],
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
    finding: "orphaned",
    faults: ["reorganisation"],
    edits: [{ file: "src/subscriptions/sealedEvents.ts", from: "this.#sendLogs(block, true);", to: "" }],
  },
  /** The lower head of a node that lags is served. */
  headBack: {
    finding: "headBack",
    faults: ["lagging node"],
    edits: [
      {
        file: "src/heads/chainRecorder.ts",
        from: "if (ring.at(number)?.hash === hash) {",
        to: "if (number < ring.latest.number && ring.at(number)?.hash === hash) { canonical.extend(ring, { blocks: [{ block: ring.at(number), header: ring.header(number) }], joined: true }); }\nif (ring.at(number)?.hash === hash) {",
      },
    ],
  },
  lostEvent: {
    finding: "lost",
    faults: [],
    edits: [{ ...NOTIFY, to: `if (Math.random() > 0.1) { ${NOTIFY.from} }` }],
  },
  repeatedEvent: {
    finding: "repeated",
    faults: [],
    edits: [{ ...NOTIFY, to: `${NOTIFY.from} if (Math.random() < 0.1) { ${NOTIFY.from} }` }],
  },
  /** Two chains share their keys. */
  otherChain: {
    finding: "wrong",
    faults: [],
    edits: [
      {
        file: "src/cache/cacheEntry.ts",
        from: ":${name}.${chainId}:${genesisHash.slice(2, 18).toLowerCase()}:",
        to: ":",
      },
    ],
  },
} satisfies Readonly<Record<string, PlantedFault>>;

export type PlantedName = keyof typeof PLANTED_FAULTS;
export const PLANTED_NAMES = Object.keys(PLANTED_FAULTS) as PlantedName[];

/** Throws if there is no such fault. */
export const plantedFaultOf = (name: string): PlantedFault => {
  const known = PLANTED_NAMES.find((each) => each === name);
  if (known === undefined) {
    throw new Error(`no fault is called "${name}": ${PLANTED_NAMES.join(", ")}`);
  }
  return PLANTED_FAULTS[known];
};
