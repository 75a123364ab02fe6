import { createUnitsOf } from "../../../src/access/providerUnits.ts";
import { round } from "./result.ts";

export type Counts = Readonly<Record<string, number>>;

/** Counts of a service since the start. */
export interface WalletSample {
  /** Calls of its clients, by method. */
  readonly asked: Counts;
  /** Its calls to its node, by method. */
  readonly sent: Counts;
  /** Units that it spent to follow state, by purpose. */
  readonly spent: Counts;
  /** Events of its answers to calls. */
  readonly events: Counts;
}

export const NO_SAMPLE: WalletSample = { asked: {}, sent: {}, spent: {}, events: {} };

export interface WalletFigures {
  readonly callsPerThousand: number;
  readonly unitsPerThousand: number;
  /** Units as a share of asking the node directly. */
  readonly ofDirect: number;
  /** The parts of `ofDirect`, by method, in percent. */
  readonly percentByMethod: Counts;
  /** The parts of `ofDirect` that follow state, by purpose, in percent. The other units are requests of clients and heads. */
  readonly percentByPurpose: Counts;
  readonly events: Counts;
}

const CALLS = 1_000;
const unitsOf = createUnitsOf();

const sum = (counts: Counts, weightOf: (method: string) => number): number =>
  Object.entries(counts).reduce((total, [method, count]) => total + count * weightOf(method), 0);
export const subtract = (after: Counts, before: Counts): Counts =>
  Object.fromEntries(Object.entries(after).map(([name, count]) => [name, count - (before[name] ?? 0)]));

/** Returns the counts in percent of a total. Those below a tenth of a thousandth are left out. */
const percentOf = (counts: Counts, total: number): Counts =>
  Object.fromEntries(
    Object.entries(counts)
      .map(([name, count]) => [name, round((100 * count) / total, 2)] as const)
      .filter(([, percent]) => percent > 0),
  );

/** The calls that follow heads and check the chain of a node. Each process follows them itself. */
const HEADS: ReadonlySet<string> = new Set(["eth_chainId", "eth_getBlockByNumber", "eth_getBlockByHash"]);

export const withoutHeads = (counts: Counts): Counts =>
  Object.fromEntries(Object.entries(counts).filter(([method]) => !HEADS.has(method)));

/** Returns the provider units of calls by method. */
export const unitsIn = (sent: Counts): number => sum(sent, unitsOf);

/** Describes the time between two samples. */
export const describeWallets = (before: WalletSample, after: WalletSample): WalletFigures => {
  const asked = subtract(after.asked, before.asked);
  const sent = subtract(after.sent, before.sent);
  const calls = sum(asked, () => 1) / CALLS;
  const direct = sum(asked, unitsOf);
  const unitsByMethod = Object.fromEntries(
    Object.entries(sent).map(([method, count]) => [method, count * unitsOf(method)]),
  );
  return {
    callsPerThousand: round(sum(sent, () => 1) / calls, 1),
    unitsPerThousand: round(sum(sent, unitsOf) / calls, 0),
    ofDirect: round(sum(sent, unitsOf) / direct, 4),
    percentByMethod: percentOf(unitsByMethod, direct),
    percentByPurpose: percentOf(subtract(after.spent, before.spent), direct),
    events: subtract(after.events, before.events),
  };
};

const SERIES = /^forebay_state_(units_spent|answers|waits|drops|write_sets|proofs)_total\{(.+)\} (\d+(?:\.\d+)?)$/;
const LABEL = /(\w+)="([^"]*)"/g;

/** Reads the units and events that a process counts. */
export const readStateCounts = async (opsUrl: string): Promise<Pick<WalletSample, "spent" | "events">> => {
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  const spent: Record<string, number> = {};
  const events: Record<string, number> = {};
  for (const line of text.split("\n")) {
    const [, family, labels = "", value] = SERIES.exec(line) ?? [];
    if (family === undefined || Number(value) === 0) {
      continue;
    }
    const names = [...labels.matchAll(LABEL)].flatMap(([, label, name = ""]) => (label === "chain" ? [] : [name]));
    if (family === "units_spent") {
      spent[names.join()] = Number(value);
    } else {
      events[[family, ...names].join(" ")] = Number(value);
    }
  }
  return { spent, events };
};
