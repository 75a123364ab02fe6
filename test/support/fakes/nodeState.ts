import type { BlockId } from "../../../src/core/heads.ts";
import type { AccountState, StateSource } from "../../../src/core/stateReader.ts";
import { isData, isQuantity, parseData } from "../../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../../../src/ethereum/keccak.ts";

export type Ask = (method: string, params: readonly unknown[]) => Promise<unknown>;

/** Creates a function that calls a node. Calls of one turn of the event loop are one batch. */
export const createAsk = (url: string): Ask => {
  let batch: {
    method: string;
    params: readonly unknown[];
    resolve(value: unknown): void;
    reject(error: Error): void;
  }[] = [];
  const send = async (): Promise<void> => {
    const calls = batch;
    batch = [];
    try {
      const body = JSON.stringify(calls.map(({ method, params }, id) => ({ jsonrpc: "2.0", id, method, params })));
      const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
      const answers = (await response.json()) as { id: number; result?: unknown; error?: { message: string } }[];
      for (const { id, result, error } of answers) {
        if (error) {
          calls[id]?.reject(new Error(error.message));
        } else {
          calls[id]?.resolve(result);
        }
      }
    } catch (error) {
      for (const { reject } of calls) {
        reject(error instanceof Error ? error : new Error(String(error)));
      }
    }
  };
  return (method, params) =>
    new Promise((resolve, reject) => {
      if (batch.length === 0) {
        setImmediate(send);
      }
      batch.push({ method, params, resolve, reject });
    });
};

const quantity = (value: unknown): bigint => (isQuantity(value) ? BigInt(value) : 0n);
const bytes = (value: unknown): Uint8Array => (isData(value) ? parseData(value) : new Uint8Array(0));
const stripped = (value: Uint8Array): Uint8Array => {
  const start = value.findIndex((byte) => byte !== 0);
  return start < 0 ? new Uint8Array(0) : value.subarray(start);
};

/** Creates a source of the state at a sealed block, read from a node without a cache. */
export const nodeState = (ask: Ask, { hash }: BlockId): StateSource => {
  const at = { blockHash: hash };
  return {
    id: hash,
    read: async ({ accounts, slots, blockHashes }) => {
      const codes = new Map<`0x${string}`, Uint8Array>();
      const readAccount = async (address: string): Promise<AccountState | undefined> => {
        const [nonce, balance, code] = await Promise.all([
          ask("eth_getTransactionCount", [address, at]),
          ask("eth_getBalance", [address, at]),
          ask("eth_getCode", [address, at]),
        ]);
        const codeBytes = bytes(code);
        const account = { nonce: quantity(nonce), balance: quantity(balance) };
        if (codeBytes.length === 0) {
          return account.nonce === 0n && account.balance === 0n ? undefined : { ...account, codeHash: EMPTY_CODE_HASH };
        }
        const codeHash = keccak256Hex(codeBytes);
        codes.set(codeHash, codeBytes);
        return { ...account, codeHash };
      };
      const [accountValues, slotValues, hashValues] = await Promise.all([
        Promise.all(accounts.map(async (address) => [address, await readAccount(address)] as const)),
        Promise.all(
          slots.map(
            async ([address, slot]) =>
              [address, slot, stripped(bytes(await ask("eth_getStorageAt", [address, slot, at])))] as const,
          ),
        ),
        Promise.all(
          blockHashes.map(async (number) => {
            const block = (await ask("eth_getBlockByNumber", [`0x${number.toString(16)}`, false])) as {
              hash: `0x${string}`;
            };
            return [number, block.hash] as const;
          }),
        ),
      ]);
      return { accounts: accountValues, codes: [...codes], slots: slotValues, blockHashes: hashValues };
    },
  };
};
