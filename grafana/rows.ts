import type { Row } from "./row.ts";
import { cacheRow } from "./rows/cacheRow.ts";
import { headsRow } from "./rows/headsRow.ts";
import { logsRow } from "./rows/logsRow.ts";
import { overviewRow } from "./rows/overviewRow.ts";
import { paymentsRow } from "./rows/paymentsRow.ts";
import { pendingRow } from "./rows/pendingRow.ts";
import { processRow } from "./rows/processRow.ts";
import { requestsRow } from "./rows/requestsRow.ts";
import { simulationRow } from "./rows/simulationRow.ts";
import { stateRow } from "./rows/stateRow.ts";
import { subscriptionsRow } from "./rows/subscriptionsRow.ts";
import { upstreamRow } from "./rows/upstreamRow.ts";
import { usageRow } from "./rows/usageRow.ts";

/** The dashboard from top to bottom. */
export const ROWS: readonly Row[] = [
  overviewRow,
  requestsRow,
  usageRow,
  paymentsRow,
  cacheRow,
  logsRow,
  upstreamRow,
  headsRow,
  pendingRow,
  simulationRow,
  stateRow,
  subscriptionsRow,
  processRow,
];
