import { chainForks, formForks } from "./chainForks.ts";
import { ETHEREUM_FORK_TIMES, type EthereumForkTimes, OP_FORK_TIMES, type OpForkTimeRow } from "./forkTimes.ts";
import { isAddress } from "./hex.ts";
import type { ChainForks } from "./rules.ts";

type Fields = Readonly<Record<string, unknown>>;

const isRecord = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns numbers by name, or throws an error that names the place. */
const readNumbers = (value: unknown, place: string): Readonly<Record<string, number>> => {
  if (value === undefined) {
    return {};
  }
  const entries = isRecord(value) ? Object.entries(value) : undefined;
  const numbers = entries?.flatMap(([name, number]) =>
    typeof number === "number" && Number.isSafeInteger(number) && number >= 0 ? [[name, number] as const] : [],
  );
  if (numbers === undefined || numbers.length !== entries?.length) {
    throw new Error(`${place} must be whole numbers by name`);
  }
  return Object.fromEntries(numbers);
};

const readRows = (file: Fields, family: "ethereum" | "op"): readonly Fields[] => {
  const rows = file[family] ?? [];
  if (!Array.isArray(rows) || !rows.every((row) => isRecord(row) && Number.isSafeInteger(row.chainId))) {
    throw new Error(`${family} must be a list of rows with a chainId`);
  }
  return rows;
};

const NO_CONTRACT = `0x${"00".repeat(20)}` as const;

/** Names of forks are not checked: those that this version does not know end its execution at their time. */
const ethereumRow = (row: Fields, chainId: number): EthereumForkTimes => {
  const known = ETHEREUM_FORK_TIMES.find((each) => each.chainId === chainId);
  const { depositContract } = row;
  return {
    ...{ chainId, name: known?.name ?? "", source: "file" },
    blocks: { ...known?.blocks, ...readNumbers(row.blocks, `blocks of ${chainId}`) },
    times: { ...known?.times, ...readNumbers(row.times, `times of ${chainId}`) },
    depositContract: isAddress(depositContract) ? depositContract : (known?.depositContract ?? NO_CONTRACT),
    forkIdBlocks: known?.forkIdBlocks ?? [],
  };
};

const opRow = (row: Fields, chainId: number): OpForkTimeRow => {
  const known = OP_FORK_TIMES.find((each) => each.chainId === chainId);
  return {
    ...{ chainId, name: known?.name ?? "", source: "file", ...known },
    times: { ...known?.times, ...readNumbers(row.times, `times of ${chainId}`) },
  };
};

/**
 * Returns the forks of a chain by a file in the form of the built-in rows: `{ethereum: [{chainId, blocks, times}], op: [{chainId, times}]}`.
 * Its numbers replace those of the built-in row, and add to them. Undefined if neither has the chain. Throws for another form.
 */
export const forksOfFile = (file: unknown, chainId: bigint): ChainForks | undefined => {
  if (!isRecord(file)) {
    throw new Error("the file must be an object with the lists ethereum and op");
  }
  const id = Number(chainId);
  const find = (family: "ethereum" | "op") => readRows(file, family).find((row) => row.chainId === id);
  const [ethereum, op] = [find("ethereum"), find("op")];
  if (ethereum !== undefined) {
    return formForks(ethereumRow(ethereum, id));
  }
  return op === undefined ? chainForks(chainId) : formForks(opRow(op, id));
};
