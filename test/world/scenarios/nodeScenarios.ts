import {
  differingMachines,
  htmlPage,
  lagging,
  pruned,
  quotaExceeded,
  refusing,
  refusingRanges,
  sawtooth,
} from "../nodes/nodeFaults.ts";
import type { NodeFault } from "../nodes/worldNode.ts";
import type { ActingWorld, Scenario } from "./scenario.ts";

const MIN_SLOW_MS = 50;
const MAX_SLOW_MS = 450;
const MAX_RANGES = [60, 8, 20] as const;
const KEPT_BLOCKS = 12;
/** Of geth and Erigon. */
const PRUNED_ERRORS = [
  { code: 4444, message: "pruned history unavailable" },
  { code: -32_000, message: "old data not available due to pruning" },
] as const;

/** The second of three nodes has the fault. The other two are honest. */
export const ofNode = (
  name: string,
  faultOf: (world: ActingWorld) => NodeFault,
  { promise = "faults", finds }: Partial<Pick<Scenario, "promise" | "finds">> = {},
): Scenario => ({
  name,
  promise,
  finds,
  begin: (world) => {
    const [, node] = world.nodes;
    if (node !== undefined) {
      node.fault = faultOf(world);
    }
  },
});

/** Honest nodes learn of a head at different times, as nodes of several operators do. */
const LATE_MS = [0, 250, 500] as const;
export const makeLate = ({ nodes }: ActingWorld): void => {
  for (const [index, node] of nodes.entries()) {
    node.fault = { lateMs: LATE_MS[index % LATE_MS.length] ?? 0 };
  }
};

/** Nodes that are honest, but late, behind, or not able to answer. */
export const NODE_SCENARIOS: readonly Scenario[] = [
  {
    name: "honest",
    promise: "bytes",
    finds: ["oldState", "nullReceipt", "otherChain", "lostEvent", "repeatedEvent"],
    isPrompt: true,
    begin: () => undefined,
  },
  { name: "late nodes", promise: "faults", finds: ["stepBack"], begin: makeLate },
  ofNode("lag of 1 block", () => lagging(1), { finds: ["headBack"] }),
  ofNode("lag of 5 blocks", () => lagging(5), { finds: ["headBack"] }),
  ofNode("lag of 50 blocks", () => lagging(50)),
  ofNode("sawtooth", sawtooth),
  ofNode("machines that differ", ({ random }) => differingMachines(random)),
  {
    name: "machines of each node",
    promise: "faults",
    begin: ({ nodes, random }) => {
      for (const node of nodes) {
        node.fault = differingMachines(random);
      }
    },
  },
  {
    name: "pruned nodes",
    promise: "faults",
    begin: ({ chain, nodes }) => {
      for (const [index, error] of PRUNED_ERRORS.entries()) {
        const node = nodes[index];
        if (node !== undefined) {
          node.fault = pruned(chain, KEPT_BLOCKS, error);
        }
      }
    },
  },
  ofNode("hang", () => ({ body: "hang" })),
  ofNode("429", () => refusing(429)),
  ofNode("503", () => refusing(503)),
  ofNode("quota", () => quotaExceeded),
  ofNode("HTML", () => htmlPage),
  ofNode("half a body", () => ({ body: "cut" })),
  {
    name: "log ranges",
    promise: "logs",
    finds: ["lostLog"],
    begin: ({ chain, nodes }) => {
      for (const [index, node] of nodes.entries()) {
        node.fault = refusingRanges(chain, MAX_RANGES[index % MAX_RANGES.length] ?? 1);
      }
    },
  },
  {
    name: "slow network",
    promise: "faults",
    begin: ({ chain, nodes, random, atEnd }) => {
      const node = nodes[random(nodes.length)];
      atEnd(chain.lagBound.beginFault());
      if (node !== undefined) {
        node.delayMs = MIN_SLOW_MS + random(MAX_SLOW_MS - MIN_SLOW_MS);
      }
    },
  },
];
