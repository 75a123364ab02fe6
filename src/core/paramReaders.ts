import { parseBlockNumberOrTag, parseBlockNumberOrTagOrHash } from "../ethereum/blockParameter.ts";
import { InvalidValueError } from "../ethereum/invalidValueError.ts";
import { parseLogQuery } from "../ethereum/logFilter.ts";
import { invalidParams } from "../jsonrpc/rpcError.ts";

/** Makes a parser of Ethereum's values one of parameters of calls: it throws RpcError (-32602). */
const ofParam =
  <Args extends readonly unknown[], T>(parse: (...args: Args) => T) =>
  (...args: Args): T => {
    try {
      return parse(...args);
    } catch (error) {
      throw error instanceof InvalidValueError ? invalidParams(error.message) : error;
    }
  };

export const readBlockNumberOrTag = ofParam(parseBlockNumberOrTag);
export const readBlockNumberOrTagOrHash = ofParam(parseBlockNumberOrTagOrHash);
export const readLogQuery = ofParam(parseLogQuery);
