import { readFileSync, writeFileSync } from "node:fs";
import { z } from "zod";
import { COLORS, drawChart } from "./svgChart.ts";

/** The curves that bench `scaling` has measured. */
const measurements = z.object({
  curves: z.array(
    z.object({
      name: z.string(),
      points: z.array(z.object({ x: z.number(), forebay: z.number(), bare: z.number().optional() })),
    }),
  ),
});

const WIDTH = 460;
const HEIGHT = 260;
const [FOREBAY = "", BARE = ""] = COLORS;

const SIZES: readonly (readonly [number, string])[] = [
  [1e6, " MB"],
  [1e3, " kB"],
];

const formatBytes = (bytes: number): string => {
  const [size, unit] = SIZES.find(([least]) => bytes >= least) ?? [1, " B"];
  return `${bytes / size}${unit}`;
};
const formatCount = (count: number): string => count.toLocaleString("en");

/** The quantity of each curve, and its labels. */
const AXES: Readonly<Record<string, { readonly title: string; readonly format: (value: number) => string }>> = {
  connections: { title: "open connections, one request at a time on each", format: formatCount },
  sizes: { title: "size of the response", format: formatBytes },
  entries: { title: "cached entries, all read in turn", format: formatCount },
  chains: { title: "followed chains", format: formatCount },
};

/** Powers of ten that enclose all values. */
const logTicks = (values: readonly number[]): readonly number[] => {
  const first = Math.floor(Math.log10(Math.min(...values)) + 1e-9);
  const last = Math.max(first + 1, Math.ceil(Math.log10(Math.max(...values)) - 1e-9));
  return Array.from({ length: last - first + 1 }, (_, index) => 10 ** (first + index));
};

/** Adds 2 and 5 times the power, if there is only one. */
const fineTicks = (values: readonly number[]): readonly number[] => {
  const [first = 1, ...more] = logTicks(values);
  return more.length > 1 ? [first, ...more] : [first, 2 * first, 5 * first, 10 * first];
};

const MICROSECONDS = 1e3;

/** 20 µs, 3 ms. */
const formatTime = (microseconds: number): string =>
  microseconds < MICROSECONDS
    ? `${Number(microseconds.toPrecision(2))} µs`
    : `${Number((microseconds / MICROSECONDS).toPrecision(2))} ms`;

type Curve = z.infer<typeof measurements>["curves"][number];

const drawCurve = ({ name, points }: Curve): string => {
  const { title, format } = AXES[name] ?? { title: name, format: formatCount };
  const xs = points.map(({ x }) => x);
  const bare = points.flatMap(({ x, bare }) => (bare === undefined ? [] : [[x, bare] as const]));
  const values = points.flatMap(({ forebay, bare }) => (bare === undefined ? [forebay] : [forebay, bare]));
  const chart = drawChart({
    ...{ width: WIDTH, height: HEIGHT },
    x: { scale: "log", ticks: logTicks(xs), format, title },
    y: { scale: "log", ticks: fineTicks(values), format: formatTime, title: "CPU per request" },
    lines: [
      ...(bare.length === 0 ? [] : [{ color: BARE, dots: true, name: "bare node:http", points: bare }]),
      { color: FOREBAY, dots: true, name: "forebay", points: points.map(({ x, forebay }) => [x, forebay] as const) },
    ],
  });
  return chart;
};

/** The pictures of the curves in docs/scaling.json, by file. A test compares them with the files. */
export const plots = (): readonly { readonly file: URL; readonly text: string }[] => {
  const { curves } = measurements.parse(JSON.parse(readFileSync(new URL("scaling.json", import.meta.url), "utf8")));
  return curves.map((curve) => ({
    file: new URL(`scaling-${curve.name}.svg`, import.meta.url),
    text: `${drawCurve(curve)}\n`,
  }));
};

if (import.meta.main) {
  for (const { file, text } of plots()) {
    writeFileSync(file, text);
  }
}
