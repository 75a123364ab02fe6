import { createHash } from "node:crypto";
import type { Address, Hash } from "../ethereum/hex.ts";
import { parseData } from "../ethereum/hex.ts";
import type { LogEntry } from "../ethereum/receipt.ts";
import { concatBytes } from "../ethereum/rlp.ts";
import type { ActiveRules } from "../evm/engine.ts";

/** The contract of EIP-7002. */
const WITHDRAWALS: Address = "0x00000961ef480eb55e80d19ad83579a64c007002";
/** The contract of EIP-7251. */
const CONSOLIDATIONS: Address = "0x0000bbddc7ce488642fb579f8b00f3a590007251";
/** EIP-8282 */
const BUILDERS: readonly Address[] = [
  "0x0000bff46984e3725691fa540a8c7589300d8282",
  "0x000064d678505ad48f8ccb093bc65613800e8282",
];
/** keccak("DepositEvent(bytes,bytes,bytes,bytes,bytes)"), the topic of EIP-6110. */
const DEPOSIT_TOPIC = "0x649bbc62d0e31342afea4e5cd82d4049e7e1ee912fc0889aa790803be39038c5";
/** Offset and length of the five fields in the data of a deposit event (EIP-6110). */
const DEPOSIT_FIELDS: readonly (readonly [at: number, bytes: number])[] = [
  [192, 48],
  [288, 32],
  [352, 8],
  [416, 96],
  [544, 8],
];
const NOTHING = new Uint8Array(0);

export interface RequestContracts extends Pick<ActiveRules, "isActive"> {
  /** Calls a contract as the system account. */
  call(contract: Address, data: Uint8Array): Promise<Uint8Array>;
}

/**
 * Collects the requests to the consensus layer at the end of a block and returns their hash.
 * `logs` are those of the whole block. Source: EIP-7685.
 */
export const runRequests = async (
  contracts: RequestContracts,
  logs: readonly LogEntry[],
  depositContract: Address | undefined,
): Promise<Hash> => {
  const deposits = logs.filter(({ address, topics }) => address === depositContract && topics[0] === DEPOSIT_TOPIC);
  const requests = [
    concatBytes(deposits.map(({ data }) => depositRequest(parseData(data)))),
    await contracts.call(WITHDRAWALS, NOTHING),
    await contracts.call(CONSOLIDATIONS, NOTHING),
  ];
  for (const contract of contracts.isActive(8282) ? BUILDERS : []) {
    requests.push(await contracts.call(contract, NOTHING));
  }
  const hash = createHash("sha256");
  for (const [type, request] of requests.entries()) {
    if (request.length === 0) {
      continue;
    }
    hash.update(createHash("sha256").update(Uint8Array.of(type)).update(request).digest());
  }
  return `0x${hash.digest("hex")}`;
};

const depositRequest = (data: Uint8Array): Uint8Array =>
  concatBytes(DEPOSIT_FIELDS.map(([at, bytes]) => data.subarray(at, at + bytes)));
