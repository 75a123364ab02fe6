import type { Method, PendingBehaviour, Prove, RetentionLabel } from "../src/methods/method.ts";
import { table } from "../src/methods/table.ts";

const RETENTION: Readonly<Record<RetentionLabel, string>> = {
  computed: "no: answered locally",
  constant: "until restart",
  head: "until the next head",
  fork: "until the next fork that it names, for up to 10 minutes",
  byHash: "7 days, by hash",
  byTransaction: "with its block: 7 days if final, else 1 hour; `null` for up to 1 s",
  block: "final: 7 days; recent: 1 hour, by block hash",
  state: "final: 7 days; recent: in memory only, by block hash",
  logs: "segments of 128 blocks; final: 7 days; recent: 1 hour",
  final: "final: 7 days; recent: no",
  never: "no",
};

const PENDING: Readonly<Record<PendingBehaviour, string>> = {
  view: "the view",
  node: "the node",
  none: "",
};

const PROVE: Readonly<Record<Extract<Prove, string>, string>> = {
  byBlock: "by its block",
  byProof: "by a proof",
  byExecution: "by an execution here",
  atDelivery: "each event",
  never: "",
};

const proveLabel = (prove: Prove = "never"): string => {
  if (typeof prove === "string") {
    return PROVE[prove];
  }
  return "byBlock" in prove ? PROVE.byBlock : PROVE.byProof;
};

const cellsOf = ({ retention, atPending, isSlow, prove }: Method): string =>
  [RETENTION[retention], PENDING[atPending], isSlow ? "yes" : "", proveLabel(prove)].join(" | ");

/** The table of docs/methods.md: one row for the methods with the same retention, behaviour at `pending`, slowness and proof. */
export const formatMethodsTable = (): string => {
  const order = Object.keys(RETENTION);
  const sorted = table.toSorted((one, other) => order.indexOf(one.retention) - order.indexOf(other.retention));
  const rows = Map.groupBy(sorted, cellsOf);
  return [
    "| Method | Cached | At `pending` | Slow | Proven |",
    "|---|---|---|---|---|",
    ...[...rows].map(([cells, same]) => `| ${same.map(({ name }) => `\`${name}\``).join(", ")} | ${cells} |`),
  ].join("\n");
};
