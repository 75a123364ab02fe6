import type { PeerLoad } from "./loads.ts";
import type { Stall } from "./stall.ts";

/** The measured values of one peer. */
export interface PeerRow {
  readonly name: string;
  readonly version: string;
  /** By load; undefined if the peer forwards what others cache. */
  readonly cpuMicroseconds: readonly (number | undefined)[];
  readonly idleMebibytes: number;
  readonly loadedMebibytes: number;
  readonly startSeconds: number;
  readonly stall: Stall | undefined;
}

const three = (value: number): string => (value >= 100 ? Math.round(value).toLocaleString("en") : value.toPrecision(3));

const formatStall = (stall: Stall | undefined): string =>
  stall === undefined ? "" : `${three(stall.longestSeconds)} s${stall.failed > 0 ? `, ${stall.failed} failed` : ""}`;

/** Formats the table of docs/performance.md: a column for each peer. */
export const formatTable = (rows: readonly PeerRow[], loads: readonly PeerLoad[]): string => {
  const line = (title: string, cell: (row: PeerRow) => string): string =>
    `| ${[title, ...rows.map(cell)].join(" | ")} |`;
  return [
    line("", ({ name, version }) => `${name} ${version}`),
    line("---", () => "---"),
    ...loads.map(({ name }, index) =>
      line(`${name}, µs of CPU`, ({ cpuMicroseconds }) => {
        const value = cpuMicroseconds[index];
        return value === undefined ? "" : three(value);
      }),
    ),
    line("memory idle / after this load, MiB", (row) => `${three(row.idleMebibytes)} / ${three(row.loadedMebibytes)}`),
    line("start to first answer, s", ({ startSeconds }) => startSeconds.toFixed(2)),
    line("longest stall when a node hangs", ({ stall }) => formatStall(stall)),
  ].join("\n");
};
