/** Number of stack words that each opcode takes. Source: Yellow Paper, appendix H.2, and later EIPs. */
const INPUTS: readonly (readonly [from: number, to: number, inputs: number])[] = [
  [0x01, 0x07, 2],
  [0x08, 0x09, 3],
  [0x0a, 0x0b, 2],
  [0x10, 0x14, 2],
  [0x15, 0x15, 1],
  [0x16, 0x18, 2],
  [0x19, 0x19, 1],
  [0x1a, 0x1d, 2],
  [0x1e, 0x1e, 1],
  [0x20, 0x20, 2],
  [0x31, 0x31, 1],
  [0x35, 0x35, 1],
  [0x37, 0x37, 3],
  [0x39, 0x39, 3],
  [0x3b, 0x3b, 1],
  [0x3c, 0x3c, 4],
  [0x3e, 0x3e, 3],
  [0x3f, 0x40, 1],
  [0x49, 0x49, 1],
  [0x50, 0x51, 1],
  [0x52, 0x53, 2],
  [0x54, 0x54, 1],
  [0x55, 0x55, 2],
  [0x56, 0x56, 1],
  [0x57, 0x57, 2],
  [0x5c, 0x5c, 1],
  [0x5d, 0x5d, 2],
  [0x5e, 0x5e, 3],
  [0xe6, 0xe6, 1],
  [0xe7, 0xe8, 2],
  [0xf0, 0xf0, 3],
  [0xf1, 0xf2, 7],
  [0xf3, 0xf3, 2],
  [0xf4, 0xf4, 6],
  [0xf5, 0xf5, 4],
  [0xfa, 0xfa, 6],
  [0xfd, 0xfd, 2],
  [0xff, 0xff, 1],
];

export const inputsOf = (opCode: number): number => {
  if (opCode >= 0x80 && opCode <= 0x8f) {
    return opCode - 0x7f;
  }
  if (opCode >= 0x90 && opCode <= 0x9f) {
    return opCode - 0x8e;
  }
  if (opCode >= 0xa0 && opCode <= 0xa4) {
    return opCode - 0x9e;
  }
  return INPUTS.find(([from, to]) => opCode >= from && opCode <= to)?.[2] ?? 0;
};

export const RETURNDATACOPY = 0x3e;
const WORD = { bytes: 32n };
const BYTE = { bytes: 1n };

/** Where an opcode accesses memory: stack positions of offset and length (the top is 0), or a fixed length. */
type Span = readonly [offset: number, length: number | { readonly bytes: bigint }];

const CALL_SPANS: readonly Span[] = [
  [3, 4],
  [5, 6],
];
const STATIC_CALL_SPANS: readonly Span[] = [
  [2, 3],
  [4, 5],
];
/** Source: geth, core/vm/memory_table.go. */
const SPANS: ReadonlyMap<number, readonly Span[]> = new Map<number, readonly Span[]>([
  [0x20, [[0, 1]]],
  [0x37, [[0, 2]]],
  [0x39, [[0, 2]]],
  [0x3c, [[1, 3]]],
  [RETURNDATACOPY, [[0, 2]]],
  [0x51, [[0, WORD]]],
  [0x52, [[0, WORD]]],
  [0x53, [[0, BYTE]]],
  [
    0x5e,
    [
      [0, 2],
      [1, 2],
    ],
  ],
  ...[0xa0, 0xa1, 0xa2, 0xa3, 0xa4].map((log) => [log, [[0, 1]]] as const),
  [0xf0, [[1, 2]]],
  [0xf1, CALL_SPANS],
  [0xf2, CALL_SPANS],
  [0xf3, [[0, 1]]],
  [0xf4, STATIC_CALL_SPANS],
  [0xf5, [[1, 2]]],
  [0xfa, STATIC_CALL_SPANS],
  [0xfd, [[0, 1]]],
]);

const ADDRESS_BITS = 160;
/** CALL, CALLCODE, DELEGATECALL, STATICCALL. */
const CALLS: ReadonlySet<number> = new Set([0xf1, 0xf2, 0xf4, 0xfa]);

/** Returns the address that an opcode calls, or undefined if it calls none. `operands` is the stack, top first. */
export const calledAddress = (opCode: number, [, to = 0n]: readonly bigint[]): bigint | undefined =>
  CALLS.has(opCode) ? BigInt.asUintN(ADDRESS_BITS, to) : undefined;

/** Returns offset and length of each memory access of an opcode. `operands` is the stack, top first. */
export const memoryAccesses = (
  opCode: number,
  operands: readonly bigint[],
): readonly { readonly offset: bigint; readonly length: bigint }[] =>
  (SPANS.get(opCode) ?? []).map(([offset, length]) => ({
    offset: operands[offset] ?? 0n,
    length: typeof length === "number" ? (operands[length] ?? 0n) : length.bytes,
  }));

/** geth's names of opcodes that are undefined in some fork. Source: geth, core/vm/opcodes.go. */
const NAMES: Readonly<Record<number, string>> = {
  27: "SHL",
  28: "SHR",
  29: "SAR",
  30: "CLZ",
  61: "RETURNDATASIZE",
  62: "RETURNDATACOPY",
  63: "EXTCODEHASH",
  70: "CHAINID",
  71: "SELFBALANCE",
  72: "BASEFEE",
  73: "BLOBHASH",
  74: "BLOBBASEFEE",
  75: "SLOTNUM",
  92: "TLOAD",
  93: "TSTORE",
  94: "MCOPY",
  95: "PUSH0",
  208: "DATALOAD",
  209: "DATALOADN",
  210: "DATASIZE",
  211: "DATACOPY",
  224: "RJUMP",
  225: "RJUMPI",
  226: "RJUMPV",
  227: "CALLF",
  228: "RETF",
  229: "JUMPF",
  230: "DUPN",
  231: "SWAPN",
  232: "EXCHANGE",
  236: "EOFCREATE",
  238: "RETURNCONTRACT",
  244: "DELEGATECALL",
  245: "CREATE2",
  247: "RETURNDATALOAD",
  248: "EXTCALL",
  249: "EXTDELEGATECALL",
  250: "STATICCALL",
  251: "EXTSTATICCALL",
  253: "REVERT",
  254: "INVALID",
};

export const nameOfUndefined = (opCode: number): string =>
  NAMES[opCode] ?? `opcode 0x${opCode.toString(16)} not defined`;

const DUPN = 0xe6;
export const SWAPN = 0xe7;
const EXCHANGE = 0xe8;

/** Whether the byte after the opcode decides which words it takes: DUPN, SWAPN, EXCHANGE (EIP-8024). `inputsOf` has the minimum. */
export const hasOperand = (opCode: number): boolean => opCode >= DUPN && opCode <= EXCHANGE;

/** Returns geth's text for an operand that is forbidden, or that names a word which the stack lacks. Source: geth, core/vm/instructions.go. */
export const formatOperand = (opCode: number, operand: number, stackLength: number): string =>
  isForbidden(opCode, operand)
    ? `invalid opcode: ${nameOfUndefined(opCode)} (operand: 0x${operand.toString(16).padStart(2, "0")})`
    : `stack underflow (${stackLength} <=> ${neededWords(opCode, operand)})`;

/** These bytes are JUMPDEST and PUSH opcodes, which analyses of old code find. EXCHANGE has fewer operands. */
const isForbidden = (opCode: number, operand: number): boolean =>
  operand > (opCode === EXCHANGE ? 0x51 : 0x5a) && operand < 0x80;

const neededWords = (opCode: number, operand: number): number => {
  switch (opCode) {
    case DUPN:
      return decodeSingle(operand);
    case SWAPN:
      return decodeSingle(operand) + 1;
    default:
      return Math.max(...decodePair(operand)) + 1;
  }
};

const decodeSingle = (operand: number): number => (operand + 145) % 256;

const decodePair = (operand: number): readonly [number, number] => {
  const cell = operand ^ 143;
  const [row, column] = [cell >> 4, cell & 15];
  return row < column ? [row + 1, column + 1] : [column + 1, 29 - row];
};
