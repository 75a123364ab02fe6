import type { Heads } from "../core/heads.ts";
import { isNull } from "../core/isNull.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import type { Awaitable } from "../jsonrpc/awaitable.ts";
import { headerNotFound } from "./headerNotFound.ts";
import type { Method, MethodInput } from "./method.ts";
import { type PlainRead, plainRead } from "./plainRead.ts";

/** The newest blocks that are searched for a hash, so that requests with unknown hashes cost little. */
const MAX_SEARCHED = 256n;

const isServed = (hash: string, heads: Heads): boolean => {
  const end = heads.latest.number - MAX_SEARCHED;
  for (let { number } = heads.latest; number >= heads.oldest && number > end; number--) {
    if (heads.at(number)?.hash === hash) {
      return true;
    }
  }
  return false;
};

/**
 * Creates a method that reads by the hash of a block. If a node returns `null` for a recent block of the served chain, the request
 * is sent again, also to other nodes. If there is no other response, and the block is still served, it is an error
 * (docs/answers.md, Blocks and pending).
 */
export const servedBlockRead = (spec: PlainRead): Method => {
  const read = plainRead(spec);
  const readAgain = plainRead({ ...spec, nullIsError: true });

  const again = async (input: MethodInput, hash: string): Promise<RpcResponse> => {
    const response = await readAgain.handle(input);
    if (!isNull(response)) {
      return response;
    }
    const heads = await input.chain.heads.refresh().catch(() => input.context.view.heads);
    if (isServed(hash, heads)) {
      throw headerNotFound();
    }
    return response;
  };

  return {
    ...read,
    handle: (input) => {
      const accept = (response: RpcResponse): Awaitable<RpcResponse> => {
        const hash = String(input.call.params[0]).toLowerCase();
        return isNull(response) && isServed(hash, input.context.view.heads) ? again(input, hash) : response;
      };
      const response = read.handle(input);
      return response instanceof Promise ? response.then(accept) : accept(response);
    },
  };
};
