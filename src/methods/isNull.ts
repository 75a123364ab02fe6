import type { Answer } from "../chain/source.ts";
import { isNull as isNullText } from "../upstream/jsonScan.ts";

/** The node has nothing there. */
export const isNull = ({ body }: Answer): boolean => body instanceof Uint8Array && isNullText(body);
