import { crc32 } from "node:zlib";
import { smaller } from "./bigintOrder.ts";
import { nativeContracts } from "./chainForks.ts";
import { type Address, type Hash, isAddress, isQuantity, parseData } from "./hex.ts";
import { areRulesKnown, type ChainForks, isForkActive, isOpForkActive, newestRulesAt, type Rules } from "./rules.ts";
import {
  BEACON_ROOTS,
  BLOCK_HASHES,
  BUILDER_DEPOSITS,
  BUILDER_EXITS,
  CONSOLIDATION_REQUESTS,
  WITHDRAWAL_REQUESTS,
} from "./systemContracts.ts";

/** A difference between the rules of a node and those of forebay. */
export interface RuleDifference {
  /** Time of the first block with such rules, in seconds. */
  readonly from: bigint;
  readonly what: string;
}

type Fields = Readonly<Record<string, unknown>>;

const isTime = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;
const isRecord = (value: unknown): value is Fields => typeof value === "object" && value !== null;

/** System contracts with one address on all chains, and those with an address of the chain. Source: EIP-7910. */
const SYSTEM_CONTRACTS = new Map<string, string | undefined>([
  ["BEACON_ROOTS_ADDRESS", BEACON_ROOTS],
  ["HISTORY_STORAGE_ADDRESS", BLOCK_HASHES],
  ["WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS", WITHDRAWAL_REQUESTS],
  ["CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS", CONSOLIDATION_REQUESTS],
  ["DEPOSIT_CONTRACT_ADDRESS", undefined],
]);
/** EIP-8282 */
const AMSTERDAM_CONTRACTS = new Map([
  ["BUILDER_DEPOSIT_CONTRACT_ADDRESS", BUILDER_DEPOSITS],
  ["BUILDER_EXIT_CONTRACT_ADDRESS", BUILDER_EXITS],
]);

/** Returns the addresses of the system contracts in a node's response to eth_config (EIP-7910). */
export const readSystemContracts = (config: unknown): readonly Address[] => {
  const current = isRecord(config) ? config.current : undefined;
  const contracts = isRecord(current) && isRecord(current.systemContracts) ? current.systemContracts : {};
  return Object.values(contracts).filter(isAddress);
};

/**
 * Returns the earliest difference between a node's response to eth_config (EIP-7910) and our rules, or `undefined`.
 * An entry without an activation time is not compared.
 */
export const findRuleDifference = (
  config: unknown,
  forks: ChainForks,
  genesisHash: Hash,
): RuleDifference | undefined => {
  if (!isRecord(config)) {
    return undefined;
  }
  const differences = [config.current, config.next, config.last].flatMap((entry) => {
    if (!isRecord(entry) || !isTime(entry.activationTime)) {
      return [];
    }
    const from = BigInt(entry.activationTime);
    const what = areRulesKnown(forks, from) ? compareEntry(entry, from, forks, genesisHash) : undefined;
    return what === undefined ? [] : [{ from, what }];
  });
  return differences.sort((one, other) => Number(one.from - other.from))[0];
};

const compareEntry = (entry: Fields, from: bigint, forks: ChainForks, genesisHash: Hash): string | undefined => {
  if (from !== 0n && !timesOf(forks).includes(from)) {
    return `activation time ${from}`;
  }
  const rules = newestRulesAt(forks, UNBOUNDED, from);
  return (
    compareBlobs(entry.blobSchedule, rules) ??
    findUnknownPrecompile(entry.precompiles, rules, from) ??
    findUnknownContract(entry.systemContracts, rules) ??
    compareForkId(entry.forkId, forks, from, genesisHash)
  );
};

/** A block number above all forks that start at a number. */
const UNBOUNDED = 2n ** 64n;

const timesOf = ({ activations, op = {} }: ChainForks): readonly (bigint | undefined)[] => [
  ...activations.map(({ timestamp }) => timestamp),
  ...Object.values(op),
];

const compareBlobs = (schedule: unknown, { blobs }: Rules): string | undefined => {
  if (blobs === undefined || !isRecord(schedule)) {
    return undefined;
  }
  const { target, max, baseFeeUpdateFraction } = schedule;
  const isSame =
    target === Number(blobs.target) &&
    max === Number(blobs.max) &&
    baseFeeUpdateFraction === Number(blobs.updateFraction);
  return isSame ? undefined : `blob schedule ${target}/${max}/${baseFeeUpdateFraction}`;
};

const LAST_ISTANBUL = 0x09n;
const LAST_CANCUN = 0x0an;
const LAST_PRAGUE = 0x11n;
const P256_VERIFY = 0x100n;

const isPrecompile = (address: bigint, rules: Rules): boolean => {
  if (address === P256_VERIFY) {
    return isForkActive(rules, "osaka") || isOpForkActive(rules, "fjord");
  }
  if (isForkActive(rules, "prague")) {
    return address <= LAST_PRAGUE;
  }
  return address <= (isForkActive(rules, "cancun") ? LAST_CANCUN : LAST_ISTANBUL);
};

const findUnknownPrecompile = (precompiles: unknown, rules: Rules, from: bigint): string | undefined => {
  if (!isRecord(precompiles)) {
    return undefined;
  }
  const natives = nativeContracts(rules.chainId, from);
  const isKnown = (address: unknown): boolean =>
    isQuantity(address) &&
    (isPrecompile(BigInt(address), rules) || natives.some((native) => address.toLowerCase().startsWith(native)));
  const unknown = Object.entries(precompiles).find(([, address]) => !isKnown(address));
  return unknown && `precompile ${unknown[0]} at ${unknown[1]}`;
};

const findUnknownContract = (contracts: unknown, rules: Rules): string | undefined => {
  if (!isRecord(contracts)) {
    return undefined;
  }
  const known = new Map([...SYSTEM_CONTRACTS, ...(isForkActive(rules, "amsterdam") ? AMSTERDAM_CONTRACTS : [])]);
  const isKnown = ([name, value]: readonly [string, unknown]): boolean => {
    const address = String(value).toLowerCase();
    return known.has(name) && (known.get(name) ?? address) === address;
  };
  const unknown = Object.entries(contracts).find((entry) => !isKnown(entry));
  return unknown && `system contract ${unknown[0]} at ${unknown[1]}`;
};

/** Returns the checksum of the genesis hash and of all forks up to that time. Source: EIP-2124. */
const compareForkId = (
  forkId: unknown,
  { activations, forkIdBlocks }: ChainForks,
  from: bigint,
  genesisHash: Hash,
): string | undefined => {
  if (!isQuantity(forkId) || forkIdBlocks === undefined) {
    return undefined;
  }
  const times = activations.flatMap(({ timestamp = 0n }) => (timestamp > 0n && timestamp <= from ? [timestamp] : []));
  const ours = [...forkIdBlocks, ...times].reduce(addFork, crc32(parseData(genesisHash)));
  return BigInt(forkId) === BigInt(ours) ? undefined : `fork id ${forkId}`;
};

const addFork = (checksum: number, fork: bigint): number => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(fork);
  return crc32(bytes, checksum);
};

/** A header as a node returned it. */
interface HeadHeader {
  readonly number: bigint;
  readonly timestamp: bigint;
  readonly fields: Readonly<Record<string, unknown>>;
}

/**
 * Returns the difference that a head's header shows: fields that its fork does not have.
 * `before` is the difference of the previous head. If its time is earlier, the result has that time.
 */
export const findHeaderDifference = (
  { number, timestamp, fields }: HeadHeader,
  forks: ChainForks,
  before: RuleDifference | undefined,
): RuleDifference | undefined => {
  const names = unknownFields(laterFields(fields), newestRulesAt(forks, number, timestamp));
  if (names.length === 0) {
    return undefined;
  }
  return { from: smaller(before?.from ?? timestamp, timestamp), what: `header field ${names.join(", ")}` };
};

/** Returns the time from which the rules are unknown: the earliest of the forks' own and of all differences. */
export const findUnknownFrom = (forks: ChainForks, differences: readonly RuleDifference[]): bigint | undefined => {
  const times = [forks.unknownFrom, ...differences.map(({ from }) => from)].flatMap((time) => time ?? []);
  return times.length === 0 ? undefined : times.reduce(smaller);
};

/** Returns the forks with another time from which the rules are unknown. */
export const withUnknownFrom = (forks: ChainForks, unknownFrom: bigint | undefined): ChainForks => {
  const { unknownFrom: _, ...rest } = forks;
  return unknownFrom === undefined ? rest : { ...rest, unknownFrom };
};

/** Fields of a block object in the execution API, up to Osaka. */
const KNOWN_FIELDS = new Set([
  ...["hash", "number", "parentHash", "sha3Uncles", "miner", "stateRoot", "transactionsRoot", "receiptsRoot"],
  ...["logsBloom", "difficulty", "gasLimit", "gasUsed", "timestamp", "extraData", "mixHash", "nonce"],
  ...["baseFeePerGas", "withdrawalsRoot", "blobGasUsed", "excessBlobGas", "parentBeaconBlockRoot", "requestsHash"],
  ...["transactions", "uncles", "withdrawals", "size"],
  // Nodes add these; they are not in the header.
  ...["totalDifficulty", "author", "sealFields", "signature", "step"],
]);

const AMSTERDAM_FIELDS: ReadonlySet<string> = new Set(["blockAccessListHash", "slotNumber"]);

/** Returns the names of fields that were added after Osaka. */
export const laterFields = (block: Readonly<Record<string, unknown>>): readonly string[] =>
  Object.keys(block).filter((name) => !KNOWN_FIELDS.has(name) && block[name] !== null && block[name] !== undefined);

/** Returns which of the fields the rules do not have. Forebay does not know the rules of a block with such a field. */
export const unknownFields = (later: readonly string[], rules: Rules): readonly string[] =>
  later.filter((name) => !(AMSTERDAM_FIELDS.has(name) && isForkActive(rules, "amsterdam")));

/** Returns the names of fields that the rules have and the block does not. The block has older rules. */
export const missingFields = (later: readonly string[], rules: Rules): readonly string[] =>
  isForkActive(rules, "amsterdam") ? [...AMSTERDAM_FIELDS].filter((name) => !later.includes(name)) : [];
