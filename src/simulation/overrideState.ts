import type { AccountField } from "../core/readSet.ts";
import { type Address, parseData } from "../ethereum/hex.ts";
import { stripZeros } from "../ethereum/rlp.ts";
import { checksumAddress } from "../evm/checks/transactionChecks.ts";
import type { ExecutionState } from "../evm/executionState.ts";
import type { OverriddenKeys, ReadRecorder } from "../evm/readRecorder.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { AccountOverride } from "./payload.ts";

const overrideError = (address: Address, what: string) =>
  new RpcError(CODES.SERVER, `account ${checksumAddress(address)} ${what}`);

/**
 * Applies the client's state overrides before the calls of a block. Throws RpcError for contradictory overrides.
 * Returns the moved precompiles of this block by address, with `null` for an address that lost its precompile.
 * Source of order and error texts: geth, internal/ethapi/override.
 */
export const overrideState = (
  state: ExecutionState,
  overrides: readonly (readonly [Address, AccountOverride])[],
  precompiles: readonly Address[],
  reads?: ReadRecorder,
): ReadonlyMap<Address, Address | null> => {
  const overridden = new Set(overrides.map(([address]) => address));
  const precompileAt = new Map<Address, Address>(precompiles.map((address) => [address, address]));
  const moved = new Map<Address, Address | null>();
  const destinations = new Set<Address>();
  for (const [address, override] of overrides) {
    if (destinations.has(address)) {
      throw overrideError(address, "has already been overridden by a precompile");
    }
    const precompile = precompileAt.get(address);
    const { movePrecompileTo: to } = override;
    if (to !== undefined) {
      if (precompile === undefined) {
        throw overrideError(address, "is not a precompile");
      }
      if (overridden.has(to)) {
        throw overrideError(to, "is already overridden");
      }
      precompileAt.set(to, precompile);
      moved.set(to, precompile);
      destinations.add(to);
    }
    if (precompile !== undefined) {
      precompileAt.delete(address);
      moved.set(address, null);
    }
    overrideAccount(state, address, override);
    reads?.override(address, overriddenKeys(override));
  }
  // The overrides count as the writes of an earlier transaction. Empty accounts are not deleted.
  state.endTransaction(false);
  return moved;
};

/** Any nonce, balance or code makes the account not empty. */
const overriddenKeys = ({ nonce, balance, code, state, stateDiff }: AccountOverride): OverriddenKeys => {
  const isEmpty = nonce === 0n && balance === 0n && code?.length === 0;
  const isNotEmpty = (nonce ?? 0n) > 0n || (balance ?? 0n) > 0n || (code?.length ?? 0) > 0;
  const fields: readonly (readonly [AccountField, boolean])[] = [
    ["nonce", nonce !== undefined],
    ["balance", balance !== undefined],
    ["code", code !== undefined],
    ["emptiness", isEmpty || isNotEmpty],
    ["storage", state !== undefined],
  ];
  return {
    fields: fields.flatMap(([field, isOverridden]) => (isOverridden ? [field] : [])),
    slots: state === undefined ? new Set(stateDiff?.keys()) : "all",
  };
};

const overrideAccount = (state: ExecutionState, address: Address, override: AccountOverride): void => {
  const { nonce, balance, code } = override;
  if (override.state !== undefined && override.stateDiff !== undefined) {
    throw overrideError(address, "has both 'state' and 'stateDiff'");
  }
  if (nonce !== undefined || balance !== undefined) {
    state.setAccount(address, nonce ?? state.nonceOf(address), balance ?? state.balanceOf(address));
  }
  if (code !== undefined) {
    state.setCode(address, code);
  }
  if (override.state !== undefined) {
    state.clear(address);
  }
  for (const [slot, value] of override.state ?? override.stateDiff ?? []) {
    state.setStorage(address, slot, stripZeros(parseData(value)));
  }
};
