import type { StateField } from "./stateKey.ts";
import { ZERO_VALUE } from "./writtenValues.ts";

/** A JSON string of hex. Nodes may shorten or pad a value of up to 32 bytes. */
const VALUE = /^"0x([0-9a-fA-F]{1,64})"$/;
const CODE = /^"0x((?:[0-9a-fA-F]{2})*)"$/;
const MAX_VALUE_LENGTH = '"0x"'.length + ZERO_VALUE.length;

const textOf = (body: Uint8Array): string =>
  Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("latin1");

/** Returns the value of a node's response: 64 digits of hex, or a code. Undefined: it has another form. */
export const parseStateBody = (field: StateField, body: Uint8Array): string | Uint8Array | undefined => {
  if (field === "code") {
    const digits = CODE.exec(textOf(body))?.[1];
    return digits === undefined ? undefined : new Uint8Array(Buffer.from(digits, "hex"));
  }
  const digits = body.byteLength > MAX_VALUE_LENGTH ? undefined : VALUE.exec(textOf(body))?.[1];
  return digits?.toLowerCase().padStart(ZERO_VALUE.length, "0");
};

/** Returns the position of the first digit of a minimal quantity. Zero has one digit. */
const firstDigit = (value: string): number => {
  let start = 0;
  while (start < value.length - 1 && value.charCodeAt(start) === 48) {
    start++;
  }
  return start;
};

/** Formats a value of 64 digits: a quantity, of a slot 32 bytes. */
export const formatStateBody = (field: Exclude<StateField, "code">, value: string): Uint8Array =>
  Buffer.from(`"0x${field === "slot" ? value : value.slice(firstDigit(value))}"`, "latin1");

export const formatCodeBody = (code: Uint8Array): Uint8Array =>
  Buffer.from(`"0x${Buffer.from(code.buffer, code.byteOffset, code.byteLength).toString("hex")}"`, "latin1");
