import { type Address, parseData } from "../ethereum/hex.ts";
import { checksumAddress } from "../evm/checksumAddress.ts";
import { type StateOverlay, stripZeros } from "../evm/stateOverlay.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { AccountOverride } from "./payload.ts";

const refuse = (address: Address, what: string) =>
  new RpcError(CODES.SERVER, `account ${checksumAddress(address)} ${what}`);

/**
 * What the caller wants the state to be before a block's calls. geth's order and words (internal/ethapi/override).
 * Returns where precompiles stand now, for this block alone: by address, null where one was taken away.
 */
export const overrideState = (
  state: StateOverlay,
  overrides: readonly (readonly [Address, AccountOverride])[],
  precompiles: readonly Address[],
): ReadonlyMap<Address, Address | null> => {
  const overridden = new Set(overrides.map(([address]) => address));
  const standing = new Map<Address, Address>(precompiles.map((address) => [address, address]));
  const moved = new Map<Address, Address | null>();
  const taken = new Set<Address>();
  for (const [address, override] of overrides) {
    if (taken.has(address)) throw refuse(address, "has already been overridden by a precompile");
    const precompile = standing.get(address);
    const { movePrecompileTo: to } = override;
    if (to !== undefined) {
      if (precompile === undefined) throw refuse(address, "is not a precompile");
      if (overridden.has(to)) throw refuse(to, "is already overridden");
      standing.set(to, precompile);
      moved.set(to, precompile);
      taken.add(to);
    }
    if (precompile !== undefined) {
      standing.delete(address);
      moved.set(address, null);
    }
    overrideAccount(state, address, override);
  }
  // As if a transaction before had done it; accounts left empty stay.
  state.endTransaction(false);
  return moved;
};

const overrideAccount = (state: StateOverlay, address: Address, override: AccountOverride): void => {
  const { nonce, balance, code } = override;
  if (override.state !== undefined && override.stateDiff !== undefined) {
    throw refuse(address, "has both 'state' and 'stateDiff'");
  }
  if (nonce !== undefined || balance !== undefined) {
    state.setAccount(address, nonce ?? state.nonceOf(address), balance ?? state.balanceOf(address));
  }
  if (code !== undefined) state.setCode(address, code);
  if (override.state !== undefined) state.clear(address);
  for (const [slot, value] of override.state ?? override.stateDiff ?? []) {
    state.setStorage(address, slot, stripZeros(parseData(value)));
  }
};
