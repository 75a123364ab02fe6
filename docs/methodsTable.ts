import type { Method, PendingBehaviour, RetentionLabel } from "../src/methods/method.ts";
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

const isRetention = (text: string): text is RetentionLabel => text in RETENTION;
const isPending = (text: string): text is PendingBehaviour => text in PENDING;

const formatRow = (
  retention: RetentionLabel,
  atPending: PendingBehaviour,
  isSlow: boolean,
  methods: readonly Method[],
): readonly string[] => {
  const names = methods
    .filter((method) => method.retention === retention && method.atPending === atPending)
    .filter((method) => (method.isSlow ?? false) === isSlow);
  if (names.length === 0) {
    return [];
  }
  const list = names.map(({ name }) => `\`${name}\``).join(", ");
  return [`| ${list} | ${RETENTION[retention]} | ${PENDING[atPending]} | ${isSlow ? "yes" : ""} |`];
};

/** The table of docs/methods.md: one row per retention, behaviour at `pending`, and slowness. */
export const formatMethodsTable = (methods: readonly Method[] = table): string => {
  const rows = Object.keys(RETENTION)
    .filter(isRetention)
    .flatMap((retention) =>
      Object.keys(PENDING)
        .filter(isPending)
        .flatMap((atPending) => [false, true].flatMap((isSlow) => formatRow(retention, atPending, isSlow, methods))),
    );
  return ["| Method | Cached | At `pending` | Slow |", "|---|---|---|---|", ...rows].join("\n");
};
