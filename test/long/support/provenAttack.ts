import { setTimeout as sleep } from "node:timers/promises";

/**
 * A process with a client that requires proven answers of forebay on the port of its first argument. It asks for what is dear: whole
 * blocks, receipts, and logs that no block has although all blooms admit them. It ends with its parent.
 */
const url = `http://127.0.0.1:${process.argv[2]}`;
/** The number of blocks of the node. */
const BLOCKS = Number(process.argv[3]);
const CALLS = 150;
const LOG_CALLS = 20;
/** Blocks of one query. */
const RANGE = 40;
const IN_FLIGHT = 4;
const PAUSE_MS = 10;
const HEADERS = {
  "content-type": "application/json",
  "x-forwarded-for": "203.0.113.20",
  "x-forebay-require": "proven",
};
const WORD = `0x${"b2".repeat(32)}`;

const quantity = (value: number): string => `0x${value.toString(16)}`;

const batchOf = (method: string, calls: number, paramsAt: (index: number) => readonly unknown[]): string =>
  JSON.stringify(Array.from({ length: calls }, (_, id) => ({ jsonrpc: "2.0", id, method, params: paramsAt(id) })));

const blockAt = (index: number): string => quantity(1 + (index % (BLOCKS - 2)));

const BODIES: readonly string[] = [
  batchOf("eth_getBlockReceipts", CALLS, (index) => [blockAt(index)]),
  batchOf("eth_getBlockByNumber", CALLS, (index) => [blockAt(index), true]),
  batchOf("eth_getLogs", LOG_CALLS, (index) => {
    const from = 1 + index * 8;
    return [{ fromBlock: quantity(from), toBlock: quantity(from + RANGE), topics: [WORD, WORD, WORD, WORD] }];
  }),
];

const attack = async (first: number): Promise<never> => {
  for (let turn = first; ; turn++) {
    await fetch(url, { method: "POST", headers: HEADERS, body: BODIES[turn % BODIES.length] ?? "" })
      .then((response) => response.arrayBuffer())
      .catch(() => undefined);
    await sleep(PAUSE_MS);
  }
};

process.on("disconnect", () => process.exit());
for (let index = 0; index < IN_FLIGHT; index++) {
  void attack(index);
}
process.send?.("started");
