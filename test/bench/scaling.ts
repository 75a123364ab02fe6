import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { type BenchOptions, type BenchResult, round } from "./support/result.ts";
import { measureChains } from "./support/scaling/chainsCurve.ts";
import { measureConnections } from "./support/scaling/connectionsCurve.ts";
import type { Curve } from "./support/scaling/curve.ts";
import { measureEntries } from "./support/scaling/entriesCurve.ts";
import { measureSizes } from "./support/scaling/sizesCurve.ts";

const CLAIM = "a hit costs at most 1.25 times the CPU of the first point with 10 chains";
/** `docs/plots.ts` draws the curves of this file. The short form does not write it. */
const FILE = new URL("../../docs/scaling.json", import.meta.url);

const CURVES = {
  connections: measureConnections,
  sizes: measureSizes,
  entries: measureEntries,
  chains: measureChains,
} as const;
/** `ONLY=name` measures one curve, and replaces it in the file. */
const only = process.env.ONLY;

/** Connections, sizes and entries bend the curve by their nature: docs/performance.md. */
const CLAIMED: Readonly<Record<string, number>> = { chains: 10 };

/** The cost of the largest claimed point, in multiples of the first one. */
const growthOf = ({ name, points }: Curve): number => {
  const claimed = points.filter(({ x }) => x <= (CLAIMED[name] ?? 0));
  return (claimed.at(-1)?.forebay ?? 0) / (claimed[0]?.forebay ?? 1);
};

/** Measures the CPU of a hit as the load, the cache and the chains grow. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const times = short ? { warmMs: 300, measureMs: 500 } : { warmMs: 1_500, measureMs: 2_500 };
  const curves: Curve[] = [];
  for (const [name, measureCurve] of Object.entries(CURVES)) {
    if (only === undefined || only === name) {
      curves.push(await measureCurve({ short, times, rounds: short ? 1 : 3 }));
    }
  }
  const about = { date: new Date().toISOString().slice(0, 10), node: process.version, cores: cpus().length };
  if (!short) {
    const others = existsSync(FILE) ? (JSON.parse(readFileSync(FILE, "utf8")).curves as readonly Curve[]) : [];
    const kept = others.filter(({ name }) => curves.every((curve) => curve.name !== name));
    writeFileSync(FILE, `${JSON.stringify({ ...about, curves: [...kept, ...curves] }, null, 2)}\n`);
  }
  const growths = curves.map(growthOf);
  const worst = Math.max(...growths);
  return {
    claim: CLAIM,
    ratio: round(1.25 / worst),
    ours: round(worst),
    yardstick: 1.25,
    unit: "times the CPU of the first point",
    ...Object.fromEntries(
      curves.map(({ name, points }) => [name, points.map(({ x, forebay }) => `${x}: ${forebay}`).join(", ")]),
    ),
  };
};
