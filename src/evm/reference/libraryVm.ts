import type { Common } from "@ethereumjs/common";
import { EVMMockBlockchain, NobleBN254 } from "@ethereumjs/evm";
import { Address as AddressBytes, EthereumJSError } from "@ethereumjs/util";
import { createVM, type RunTxResult, runTx, type VM } from "@ethereumjs/vm";
import { type Address, parseData } from "../../ethereum/hex.ts";
import type { TransactionContext } from "../engine.ts";
import { NotExecutableError } from "../executionErrors.ts";
import { SYSTEM, SYSTEM_GAS } from "../systemCalls.ts";
import type { TransactionMessage } from "../transactionMessage.ts";
import { InstrumentedEvm } from "./instrumentedEvm.ts";
import { LibraryReads } from "./libraryReads.ts";
import { libraryBlock, libraryTransaction } from "./libraryTransaction.ts";
import type { ReferenceState } from "./referenceState.ts";
import { ReferenceStateManager } from "./referenceStateManager.ts";

/** The state and the block in which the library executes. */
interface LibraryPlace extends TransactionContext {
  readonly state: ReferenceState;
}

interface LibraryOptions {
  readonly skipsNonce: boolean;
  readonly tracesAccess: boolean;
}

/** The parts of one VM. */
interface Parts {
  readonly vm: VM;
  readonly evm: InstrumentedEvm;
  readonly manager: ReferenceStateManager;
}

/** The library's VM for one set of rules. It executes on one state after another. */
export class LibraryVm {
  readonly #common: Common;
  #parts: Parts | undefined;

  constructor(common: Common) {
    this.#common = common;
  }

  /** Undoes all writes if it throws. */
  transact(place: LibraryPlace, message: TransactionMessage, options: LibraryOptions): Promise<RunTxResult> {
    return this.#atomic(place, ({ vm }, reads) => {
      reads?.authorizations(message.authorizationList);
      return runTx(vm, {
        tx: libraryTransaction(message, this.#common),
        block: libraryBlock(place.block, this.#common),
        skipNonce: options.skipsNonce,
        skipBlockGasLimitValidation: true,
        reportAccessList: options.tracesAccess,
      });
    });
  }

  /** Undoes all writes if it throws. */
  callAsSystem(place: LibraryPlace, to: Address, data: Uint8Array): Promise<Uint8Array> {
    return this.#atomic(place, async ({ evm, manager }) => {
      const { execResult } = await evm.runCall({
        block: libraryBlock(place.block, this.#common),
        caller: new AddressBytes(parseData(SYSTEM)),
        to: new AddressBytes(parseData(to)),
        data,
        gasLimit: SYSTEM_GAS,
        skipNonceIncrement: true,
      });
      await evm.journal.cleanup();
      manager.originalStorageCache.clear();
      const hasData = execResult.exceptionError === undefined || execResult.exceptionError.error === "revert";
      return hasData ? execResult.returnValue : new Uint8Array(0);
    });
  }

  async #atomic<T>(
    place: LibraryPlace,
    run: (parts: Parts, reads: LibraryReads | undefined) => Promise<T>,
  ): Promise<T> {
    const { state, block } = place;
    this.#parts ??= await createParts(this.#common, state);
    const parts = this.#parts;
    parts.manager.state = state;
    parts.evm.use(block);
    const reads = place.reads && new LibraryReads(place, this.#common, place.reads);
    const stopListening = reads?.listen(parts.evm);
    state.mark();
    try {
      const result = await run(parts, reads);
      state.endTransaction(false);
      state.keep();
      return result;
    } catch (error) {
      state.abandon();
      // The library's journal is in the middle of a transaction.
      this.#parts = undefined;
      throw error instanceof EthereumJSError ? new NotExecutableError(`the library: ${error.message}`) : error;
    } finally {
      stopListening?.();
    }
  }
}

const createParts = async (common: Common, state: ReferenceState): Promise<Parts> => {
  const manager = new ReferenceStateManager(state);
  const bn254 = new NobleBN254();
  const evm = new InstrumentedEvm({ common, stateManager: manager, blockchain: new EVMMockBlockchain(), bn254 });
  return { vm: await createVM({ common, stateManager: manager, evm }), evm, manager };
};
