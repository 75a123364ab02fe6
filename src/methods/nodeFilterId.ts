/** A filter that a node created and stores. */
export interface NodeFilter {
  readonly node: string;
  /** The id that the node returned. */
  readonly id: string;
}

const FORM = /^node\/(?<node>[a-z][a-z0-9-]*)\/(?<id>.+)$/s;
const HEX = /^0x(?:[0-9a-f]{2})+$/i;

/** Returns the id for clients: hex, like every filter id, with the node's name in it. Any replica can read the node from it. */
export const formatNodeFilterId = ({ node, id }: NodeFilter): string =>
  `0x${Buffer.from(`node/${node}/${id}`).toString("hex")}`;

/** Returns undefined for an id that `formatNodeFilterId` did not create. */
export const parseNodeFilterId = (value: unknown): NodeFilter | undefined => {
  if (typeof value !== "string" || !HEX.test(value)) {
    return undefined;
  }
  const groups = FORM.exec(Buffer.from(value.slice(2), "hex").toString())?.groups;
  return groups?.node === undefined || groups.id === undefined ? undefined : { node: groups.node, id: groups.id };
};
