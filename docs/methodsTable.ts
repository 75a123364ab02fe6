import type { Method, PendingBehaviour, RetentionLabel } from "../src/methods/method.ts";
import { table } from "../src/methods/table.ts";

const KEPT: Readonly<Record<RetentionLabel, string>> = {
  computed: "made here, nothing to keep",
  constant: "until restart",
  head: "until the next head",
  byHash: "by hash: 7 days",
  byTransaction: "with its block: 7 days if final, else 1 hour; `null` at most 1 s",
  block: "final: 7 days; above: 1 hour, by the block's hash",
  state: "final: 7 days; above: in memory, by the block's hash",
  logs: "segments of 128 blocks; final: 7 days, above: 1 hour",
  final: "final: 7 days; above: not kept",
  never: "never",
};

const PENDING: Readonly<Record<PendingBehaviour, string>> = {
  view: "the view",
  node: "the node",
  none: "",
};

const isKept = (text: string): text is RetentionLabel => text in KEPT;
const isAtPending = (text: string): text is PendingBehaviour => text in PENDING;

const formatRow = (
  kept: RetentionLabel,
  atPending: PendingBehaviour,
  methods: readonly Method[],
): readonly string[] => {
  const names = methods.filter((method) => method.kept === kept && method.atPending === atPending);
  if (names.length === 0) return [];
  return [`| ${names.map(({ name }) => `\`${name}\``).join(", ")} | ${KEPT[kept]} | ${PENDING[atPending]} |`];
};

/** The methods that forebay knows, those that are treated alike in one row. */
export const formatMethodsTable = (methods: readonly Method[] = table): string => {
  const rows = Object.keys(KEPT)
    .filter(isKept)
    .flatMap((kept) =>
      Object.keys(PENDING)
        .filter(isAtPending)
        .flatMap((atPending) => formatRow(kept, atPending, methods)),
    );
  return ["| Method | Kept | At `pending` |", "|---|---|---|", ...rows].join("\n");
};
