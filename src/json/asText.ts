import { LETTER_N } from "./jsonBytes.ts";

const decoder = new TextDecoder();

export const asText = (bytes: Uint8Array): string => decoder.decode(bytes);

/** Whether the text of a JSON value, without space around it, is `null`. */
export const isNullText = (value: Uint8Array): boolean => value.length === 4 && value[0] === LETTER_N;
