import type { Lie } from "../../support/fakes/lyingNode.ts";
import { LIES, REFUND_LIES } from "../nodes/nodeFaults.ts";
import { ofNode } from "./nodeScenarios.ts";
import type { ActingWorld, Scenario } from "./scenario.ts";

const LIE_MS = 1_500;

/** The second of three nodes tells one lie after the other. Any of them can be the first, after which it may be suspended. */
const tell = (lies: readonly Lie[], { nodes: [, node], random, repeat }: ActingWorld): void => {
  let count = random(lies.length);
  repeat(LIE_MS, () => {
    const lie = lies[count++ % lies.length];
    if (node !== undefined && lie !== undefined) {
      node.fault = { lies: [lie] };
    }
  });
};

const ofLies = (name: string): Scenario => ({
  name: `lies: ${name}`,
  ...(name === "invented head" ? { promise: "inventedHeads", finds: ["highestHead"] } : { promise: "wrongResponses" }),
  begin: (world) => tell(LIES[name] ?? [], world),
});

/** These lies can stay in a cache, and would count in the scenarios after them. */
const LAST: readonly string[] = ["logs", "receipts"];

/** Wrong responses of one of three nodes. */
export const LIE_SCENARIOS: readonly Scenario[] = [
  ...Object.keys(LIES)
    .filter((name) => !LAST.includes(name))
    .map(ofLies),
  {
    name: "refunds",
    promise: "wrongResponses",
    begin: (world) => {
      world.chain.givesBack = true;
      tell(REFUND_LIES, world);
      world.atEnd(() => {
        world.chain.givesBack = false;
      });
    },
  },
  ofNode("another chain", ({ other }) => ({ chain: other }), { promise: "wrongResponses" }),
];

/** The lies that must come after all other scenarios. */
export const LAST_SCENARIOS: readonly Scenario[] = LAST.map(ofLies);
