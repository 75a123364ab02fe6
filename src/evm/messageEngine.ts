import { Mainnet } from "@ethereumjs/common";
import { type EVMError, EVMMockBlockchain, type EVMResult, NobleBN254, type PrecompileFunc } from "@ethereumjs/evm";
import { Address as AddressBytes } from "@ethereumjs/util";
import { type Address, formatData, type Hash, parseData } from "../ethereum/hex.ts";
import type { Rules } from "../ethereum/rules.ts";
import type { AccessListEntry } from "../ethereum/transaction.ts";
import { customCrypto } from "./crypto.ts";
import type { BlockEnvironment, EngineLog } from "./engine.ts";
import type { Message, MessageContext, MessageEngine, MessageResult } from "./evmMessage.ts";
import { formatHalt } from "./exceptionalHalt.ts";
import { FastCommon } from "./fastCommon.ts";
import { LibraryState } from "./libraryState.ts";
import { opPrecompiles } from "./opPrecompiles.ts";
import { withGethErrors } from "./precompileErrors.ts";
import { StateOverlay } from "./stateOverlay.ts";
import { type LibraryLog, TracingEvm } from "./tracingEvm.ts";
import { isTransferLog } from "./transferLog.ts";

const NOTHING = new Uint8Array(0);
const NO_ANCESTOR = new Uint8Array(32);

/** Makes the engine of one set of rules, based on the library's EVM. It runs one message at a time. */
export const createMessageEngine = (rules: Rules): MessageEngine => {
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
  const standard = opPrecompiles(rules, withGethErrors(evm.precompiles));
  const precompiles = [...standard.keys()].map((key): Address => `0x${key}`);

  const run = async (state: StateOverlay, message: Message, context: MessageContext): Promise<MessageResult> => {
    evm.use(state, movePrecompiles(standard, context.movedPrecompiles), context.block);
    evm.tracesTransfers = context.tracesTransfers ?? false;
    if (context.tracesAccess) {
      evm.journal.startReportingAccessList();
    }
    for (const address of context.warmAddresses) {
      evm.journal.addAlwaysWarmAddress(address);
    }
    for (const [address, slot] of context.warmSlots) {
      evm.journal.addAlwaysWarmSlot(address, slot);
    }
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
      const described = describe(result, common.isActivatedEIP(6780), evm);
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
  if (moved === undefined || moved.size === 0) {
    return standard;
  }
  const precompiles = new Map(standard);
  for (const [to, from] of moved) {
    const precompile = from === null ? undefined : standard.get(from.slice(2));
    if (precompile === undefined) {
      precompiles.delete(to.slice(2));
    } else {
      precompiles.set(to.slice(2), precompile);
    }
  }
  return precompiles;
};

const describe = ({ execResult, createdAddress }: EVMResult, keepsOlder: boolean, evm: TracingEvm): MessageResult => {
  const { exceptionError, executionGasUsed, returnValue } = execResult;
  const { capturedLogs } = evm;
  if (exceptionError !== undefined) {
    return describeFailure(execResult, exceptionError, capturedLogs);
  }
  const created = execResult.createdAddresses;
  // EIP-6780: only accounts that this transaction created are destroyed.
  const isDestroyed = (address: string) => !keepsOlder || created === undefined || created.has(address as Address);
  return {
    status: "success",
    returnData: returnValue,
    gasUsed: executionGasUsed,
    refund: execResult.gasRefund ?? 0n,
    logs: (execResult.logs ?? []).map((log) => describeLog(log, evm.indexOf(log))),
    capturedLogs,
    destroyed: [...(execResult.selfdestruct?.keys() ?? [])].filter(isDestroyed),
    ...(createdAddress === undefined ? {} : { created: formatData(createdAddress.bytes) }),
  };
};

const describeFailure = (result: EVMResult["execResult"], error: EVMError, capturedLogs: number): MessageResult => {
  const failed = { gasUsed: result.executionGasUsed, refund: 0n, logs: [], capturedLogs, destroyed: [] };
  if (error.error === "revert") {
    return { ...failed, status: "revert", returnData: result.returnValue };
  }
  return { ...failed, status: "halt", halt: formatHalt(error, result.runState), returnData: NOTHING };
};

const describeLog = (log: LibraryLog, index: number): EngineLog => ({
  address: formatData(log[0]),
  topics: log[1].map(formatData),
  data: formatData(log[2]),
  isTransfer: isTransferLog(log),
  index,
});

const describeAccess = (accessed: ReadonlyMap<string, ReadonlySet<string>>): AccessListEntry[] =>
  [...accessed].map(([address, slots]) => ({
    address: `0x${address}`,
    storageKeys: [...slots].map((slot): Hash => `0x${slot}`),
  }));
