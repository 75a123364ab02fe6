import assert from "node:assert/strict";
import { rpc } from "../clients/rpc.ts";
import type { Service } from "./service.ts";

const PLAIN_CALL = { to: `0x${"b0".repeat(20)}` };

/**
 * Starts a thread of the service and executes a call there. The first one may take longer than the execution of a known call may last,
 * which is then tried again after 30 s.
 */
export const loadThread = async ({ url }: Pick<Service, "url">, call: unknown = PLAIN_CALL): Promise<void> => {
  const { body, text } = await rpc(url, "eth_simulateV1", [{ blockStateCalls: [{ calls: [call] }] }, "latest"]);
  assert.ok(Array.isArray(body.result), text);
};
