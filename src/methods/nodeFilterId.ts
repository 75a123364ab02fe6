/** A filter that a node made: it lives in that node. */
export interface NodeFilter {
  readonly node: string;
  /** The id that the node gave. */
  readonly id: string;
}

const FORM = /^node\/(?<node>[a-z][a-z0-9-]*)\/(?<id>.+)$/s;
const HEX = /^0x(?:[0-9a-f]{2})+$/i;

/** The id as clients get it: hex, as every filter id, with the node's name in it. Any replica reads the node from it. */
export const formatNodeFilterId = ({ node, id }: NodeFilter): string =>
  `0x${Buffer.from(`node/${node}/${id}`).toString("hex")}`;

/** Undefined for any id that `formatNodeFilterId` did not make. */
export const parseNodeFilterId = (value: unknown): NodeFilter | undefined => {
  if (typeof value !== "string" || !HEX.test(value)) return undefined;
  const groups = FORM.exec(Buffer.from(value.slice(2), "hex").toString())?.groups;
  return groups?.node === undefined || groups.id === undefined ? undefined : { node: groups.node, id: groups.id };
};
