import { test } from "node:test";
import { sendThroughReplicas } from "../support/servers/writeNodes.ts";

test("10,000 transactions get to three nodes once each, and each client has its hash, through two replicas", (t) =>
  sendThroughReplicas(t, 10_000));
