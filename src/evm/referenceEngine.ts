import { Mainnet } from "@ethereumjs/common";
import {
  EVM,
  type EVMError,
  EVMMockBlockchain,
  type EVMResult,
  type Message as LibraryMessage,
  NobleBN254,
  type PrecompileFunc,
} from "@ethereumjs/evm";
import { Address as AddressBytes } from "@ethereumjs/util";
import { type Address, formatData, type Hash, parseData } from "../chain/hex.ts";
import type { Rules } from "../chain/rules.ts";
import type { AccessListEntry } from "../chain/transaction.ts";
import { customCrypto } from "./crypto.ts";
import type { BlockEnvironment, Engine, EngineLog, Message, MessageContext, MessageResult } from "./engine.ts";
import { FastCommon } from "./fastCommon.ts";
import { describeHalt } from "./halt.ts";
import { keepJumpAnalyses } from "./jumpAnalysis.ts";
import { LibraryState } from "./libraryState.ts";
import { opPrecompiles } from "./opPrecompiles.ts";
import { StateOverlay } from "./stateOverlay.ts";
import { isTransferLog, transferLog } from "./transferLog.ts";

type LibraryLog = NonNullable<EVMResult["execResult"]["logs"]>[number];
type CallMessage = Parameters<EVM["_executeCall"]>[0];

const NOTHING = new Uint8Array(0);
const JUMPDEST = 0x5b;
const SELFDESTRUCT = 0xff;
const NO_ANCESTOR = new Uint8Array(32);

/** The library's EVM with the places where value moves among its logs. */
class TracingEvm extends EVM {
  tracesTransfers = false;

  use(state: StateOverlay, precompiles: Map<string, PrecompileFunc>, block: BlockEnvironment): void {
    const manager = new LibraryState(state);
    this.stateManager = manager;
    this._precompiles = precompiles;
    // The journal is given its state only when it is made, and making an EVM costs more than a transfer.
    Reflect.set(this.journal, "stateManager", manager);
    this.journal.cleanJournal();
    this.transientStorage.clear();
    this.blockchain = blockHashes(block);
  }

  /** A contract's balance goes to another without a message. */
  traceSelfDestructs(): void {
    const entry = this._opcodeMap[SELFDESTRUCT];
    if (entry === undefined) throw new Error("the library's opcode table changed");
    const original = entry.opHandler;
    entry.opHandler = (runState, common) => {
      const { contract, address } = runState.env;
      if (this.tracesTransfers && contract.balance > 0n && !runState.env.isStatic) {
        const [beneficiary = 0n] = runState.stack.peek(1);
        const to = parseData(`0x${BigInt.asUintN(160, beneficiary).toString(16).padStart(40, "0")}`);
        runState.interpreter._result.logs.push(transferLog(address.bytes, to, contract.balance));
      }
      return original(runState, common);
    };
  }

  /** From the first jump on. */
  keepJumpAnalyses(): void {
    const entry = this._opcodeMap[JUMPDEST];
    if (entry === undefined) throw new Error("the library's opcode table changed");
    const original = entry.opHandler;
    entry.opHandler = (runState, common) => {
      entry.opHandler = original;
      keepJumpAnalyses(this, runState.interpreter);
      return original(runState, common);
    };
  }

  protected override async _executeCall(message: CallMessage): Promise<EVMResult> {
    const result = await super._executeCall(message);
    // CALLCODE sends value from an account to itself.
    const isCallCode = message._codeAddress !== undefined;
    if (!message.delegatecall && !isCallCode) this.#trace(message, message.to, result);
    return result;
  }

  protected override async _executeCreate(message: LibraryMessage): Promise<EVMResult> {
    const result = await super._executeCreate(message);
    if (result.createdAddress !== undefined) this.#trace(message, result.createdAddress, result);
    return result;
  }

  /** Before the frame's own logs; with them it is dropped if the frame fails. */
  #trace(message: LibraryMessage, to: AddressBytes, { execResult }: EVMResult): void {
    if (!this.tracesTransfers || message.value === 0n) return;
    execResult.logs = [transferLog(message.caller.bytes, to.bytes, message.value), ...(execResult.logs ?? [])];
  }
}

const blockHashes = (block: BlockEnvironment) => {
  const getBlock = (number: number) => {
    const hash = number < 0 ? NO_ANCESTOR : parseData(block.blockHash(BigInt(number)));
    return Promise.resolve({ hash: () => hash });
  };
  const blockchain: EVMMockBlockchain = new EVMMockBlockchain();
  return Object.assign(blockchain, { getBlock });
};

/** The engine of one set of rules, on the library's EVM. It runs one message at a time. */
export const createReferenceEngine = (rules: Rules): Engine => {
  const common = new FastCommon({
    chain: { ...Mainnet, chainId: Number(rules.chainId) },
    hardfork: rules.fork,
    customCrypto,
  });
  const evm = new TracingEvm({
    common,
    stateManager: new LibraryState(new StateOverlay(EMPTY_READER)),
    blockchain: new EVMMockBlockchain(),
    bn254: new NobleBN254(),
  });
  evm.traceSelfDestructs();
  evm.keepJumpAnalyses();
  const standard = opPrecompiles(rules, new Map(evm.precompiles));
  const precompiles = [...standard.keys()].map((key): Address => `0x${key}`);

  const run = async (state: StateOverlay, message: Message, context: MessageContext): Promise<MessageResult> => {
    evm.use(state, movePrecompiles(standard, context.movedPrecompiles), context.block);
    evm.tracesTransfers = context.tracesTransfers ?? false;
    if (context.tracesAccess) evm.journal.startReportingAccessList();
    for (const address of context.warmAddresses) evm.journal.addAlwaysWarmAddress(address);
    for (const [address, slot] of context.warmSlots) evm.journal.addAlwaysWarmSlot(address, slot);
    try {
      const result = await evm.runCall({
        block: libraryBlock(context.block),
        caller: new AddressBytes(parseData(message.caller)),
        ...(message.to === null ? {} : { to: new AddressBytes(parseData(message.to)) }),
        value: message.value,
        data: message.data,
        gasLimit: message.gas,
        gasPrice: context.gasPrice,
        blobVersionedHashes: [...context.blobVersionedHashes],
        skipNonceIncrement: true,
      });
      const described = describe(result, common.isActivatedEIP(6780));
      const { accessList } = evm.journal;
      return accessList === undefined ? described : { ...described, accessed: describeAccess(accessList) };
    } finally {
      delete evm.journal.accessList;
      evm.journal.cleanJournal();
    }
  };

  return { rules, precompiles, isActive: (eip) => common.isActivatedEIP(eip), run };
};

const EMPTY_READER = {
  account: () => undefined,
  code: () => NOTHING,
  storage: () => NOTHING,
  blockHash: (): Hash => formatData(NO_ANCESTOR),
};

const libraryBlock = (block: BlockEnvironment) => ({
  header: {
    number: block.number,
    timestamp: block.timestamp,
    coinbase: new AddressBytes(parseData(block.coinbase)),
    gasLimit: block.gasLimit,
    baseFeePerGas: block.baseFee,
    prevRandao: parseData(block.prevRandao),
    difficulty: block.difficulty ?? 0n,
    getBlobGasPrice: () => block.blobBaseFee,
  },
});

const movePrecompiles = (
  standard: Map<string, PrecompileFunc>,
  moved: ReadonlyMap<Address, Address | null> | undefined,
): Map<string, PrecompileFunc> => {
  if (moved === undefined || moved.size === 0) return standard;
  const precompiles = new Map(standard);
  for (const [to, from] of moved) {
    const precompile = from === null ? undefined : standard.get(from.slice(2));
    if (precompile === undefined) precompiles.delete(to.slice(2));
    else precompiles.set(to.slice(2), precompile);
  }
  return precompiles;
};

const describe = ({ execResult, createdAddress }: EVMResult, keepsOlder: boolean): MessageResult => {
  const { exceptionError, executionGasUsed, returnValue } = execResult;
  if (exceptionError !== undefined) return describeFailure(execResult, exceptionError);
  const born = execResult.createdAddresses;
  // EIP-6780: only what this transaction created goes.
  const isDestroyed = (address: string) => !keepsOlder || born === undefined || born.has(address as Address);
  return {
    status: "success",
    returnData: returnValue,
    gasUsed: executionGasUsed,
    refund: execResult.gasRefund ?? 0n,
    logs: (execResult.logs ?? []).map(describeLog),
    destroyed: [...(execResult.selfdestruct?.keys() ?? [])].filter(isDestroyed),
    ...(createdAddress === undefined ? {} : { created: formatData(createdAddress.bytes) }),
  };
};

const describeFailure = (result: EVMResult["execResult"], error: EVMError): MessageResult => {
  const failed = { gasUsed: result.executionGasUsed, refund: 0n, logs: [], destroyed: [] };
  if (error.error === "revert") return { ...failed, status: "revert", returnData: result.returnValue };
  return { ...failed, status: "halt", halt: describeHalt(error, result.runState), returnData: NOTHING };
};

const describeLog = (log: LibraryLog): EngineLog => ({
  address: formatData(log[0]),
  topics: log[1].map(formatData),
  data: formatData(log[2]),
  isTransfer: isTransferLog(log),
});

const describeAccess = (accessed: ReadonlyMap<string, ReadonlySet<string>>): AccessListEntry[] =>
  [...accessed].map(([address, slots]) => ({
    address: `0x${address}`,
    storageKeys: [...slots].map((slot): Hash => `0x${slot}`),
  }));

/** Warm engines, one for each set of rules: the library's tables cost more to make than a transfer to run. */
export const createEngines = (): ((rules: Rules) => Engine) => {
  const engines = new Map<string, Engine>();
  return (rules) => {
    const key = `${rules.chainId} ${rules.fork} ${rules.op ?? ""}`;
    const known = engines.get(key);
    if (known !== undefined) return known;
    const engine = createReferenceEngine(rules);
    engines.set(key, engine);
    return engine;
  };
};
