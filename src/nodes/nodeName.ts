/** Returns the name of a configured node: its own, or `node` with its position from 1. */
export const nodeName = ({ name }: { readonly name?: string | undefined }, index: number): string =>
  name ?? `node${index + 1}`;
