import { createUnitsOf } from "../../src/access/providerUnits.ts";

/** What was counted since the start. */
export interface Totals {
  readonly walletCalls: number;
  /** The price of the calls of wallets, if nodes answered all of them. */
  readonly walletUnits: number;
  /** Calls that reached a node, those of forebay itself included. */
  readonly nodeCalls: number;
  readonly nodeUnits: number;
  readonly failed: number;
}

export type CallCounts = ReadonlyMap<string, number>;

const unitsOf = createUnitsOf();

const sum = (counts: CallCounts, weightOf: (method: string) => number): number =>
  counts.entries().reduce((total, [method, count]) => total + count * weightOf(method), 0);

export const NO_TOTALS: Totals = { walletCalls: 0, walletUnits: 0, nodeCalls: 0, nodeUnits: 0, failed: 0 };

export const totalsOf = (wallets: CallCounts, nodes: readonly CallCounts[], failed: number): Totals => ({
  walletCalls: sum(wallets, () => 1),
  walletUnits: sum(wallets, unitsOf),
  nodeCalls: nodes.reduce((total, counts) => total + sum(counts, () => 1), 0),
  nodeUnits: nodes.reduce((total, counts) => total + sum(counts, unitsOf), 0),
  failed,
});

export const subtractTotals = (after: Totals, before: Totals): Totals => ({
  walletCalls: after.walletCalls - before.walletCalls,
  walletUnits: after.walletUnits - before.walletUnits,
  nodeCalls: after.nodeCalls - before.nodeCalls,
  nodeUnits: after.nodeUnits - before.nodeUnits,
  failed: after.failed - before.failed,
});

/** Returns the units of nodes as a share of asking them directly, from 0 on; undefined without calls. */
export const unitShare = ({ walletUnits, nodeUnits }: Totals): number | undefined =>
  walletUnits === 0 ? undefined : nodeUnits / walletUnits;

/** Returns the share of calls of wallets for which no node was asked, at most 1; undefined without calls. */
export const savedShare = ({ walletCalls, nodeCalls }: Totals): number | undefined =>
  walletCalls === 0 ? undefined : 1 - nodeCalls / walletCalls;
