/** Returns the parameters of a call without the block, from the canonical text of method and parameters. */
export const paramsOfKey = (key: string): readonly unknown[] => JSON.parse(key)[1];
