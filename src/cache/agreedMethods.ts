/** Single values of the state. The nodes of a chain have one of them, so that a node with another one is wrong. */
const SINGLE_VALUES: ReadonlySet<string> = new Set([
  "eth_getBalance",
  "eth_getTransactionCount",
  "eth_getCode",
  "eth_getStorageAt",
]);

/** Nodes of different software give different results for these, and all of them are right. */
const VARYING = /^(debug|trace)_|^eth_(estimateGas|createAccessList|getProof|feeHistory)$/;

/** Nodes of different software return the same for these. */
const OTHER_STATE: ReadonlySet<string> = new Set([
  "eth_call",
  "eth_getStorageValues",
  "eth_getAccount",
  "eth_getAccountInfo",
]);

export const isSingleValue = (method: string): boolean => SINGLE_VALUES.has(method);

export const variesByNode = (method: string): boolean => VARYING.test(method);

/** Whether two origins must agree on the response, if the chain requires that of state. */
export const needsAgreement = (method: string): boolean => SINGLE_VALUES.has(method) || OTHER_STATE.has(method);
