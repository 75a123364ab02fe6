import { type Address, isAddress } from "../../ethereum/hex.ts";

/** The answer is read again after this time: a fork can add contracts. */
const MAX_AGE_MS = 600_000;

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;

/** Returns the system contracts of all forks in a response to eth_config (EIP-7910). */
export const parseSystemContracts = (config: unknown): readonly Address[] => {
  if (!isRecord(config)) {
    return [];
  }
  const contracts = [config.current, config.next, config.last].flatMap((entry) =>
    isRecord(entry) && isRecord(entry.systemContracts) ? Object.values(entry.systemContracts) : [],
  );
  const addresses = contracts.filter(isAddress).map((address): Address => `0x${address.slice(2).toLowerCase()}`);
  return [...new Set(addresses)];
};

/** The system contracts that a chain's node reports. A node without eth_config reports none. */
export class SystemContracts {
  readonly #readConfig: () => Promise<unknown>;
  readonly #nowMs: () => number;
  #contracts: Promise<readonly Address[]> | undefined;
  #readAtMs = 0;

  constructor(readConfig: () => Promise<unknown>, nowMs = () => performance.now()) {
    this.#readConfig = readConfig;
    this.#nowMs = nowMs;
  }

  /** Never rejects. If a later read fails, the contracts stay. */
  read(): Promise<readonly Address[]> {
    const before = this.#contracts;
    if (before === undefined || this.#nowMs() - this.#readAtMs > MAX_AGE_MS) {
      this.#readAtMs = this.#nowMs();
      this.#contracts = this.#readConfig().then(parseSystemContracts, () => before ?? []);
    }
    return this.#contracts ?? Promise.resolve([]);
  }
}
