/** The bytes that JSON gives a meaning (RFC 8259, section 2). */
export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const OPEN_BRACKET = 0x5b;
export const CLOSE_BRACKET = 0x5d;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
/** The first bytes of `true`, `false` and `null`. */
export const LETTER_T = 0x74;
export const LETTER_F = 0x66;
export const LETTER_N = 0x6e;

/** Returns a Buffer of the same memory. */
export const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

const decoder = new TextDecoder();

export const asText = (bytes: Uint8Array): string => decoder.decode(bytes);

/** Parses a JSON text. Throws SyntaxError. */
export const parseJson = (text: Uint8Array): unknown => JSON.parse(decoder.decode(text));

const encoder = new TextEncoder();

/** Returns the JSON text of a value. */
export const formatJson = (value: unknown): Uint8Array => encoder.encode(JSON.stringify(value));

const OPEN_TEXT = Buffer.from("[");
const COMMA_TEXT = Buffer.from(",");
const CLOSE_TEXT = Buffer.from("]");

/** Returns the parts of the JSON list of these texts. None of them is copied. */
export const listParts = (texts: readonly Uint8Array[]): readonly Uint8Array[] =>
  texts.length === 0
    ? [OPEN_TEXT, CLOSE_TEXT]
    : [...texts.flatMap((text, index) => [index === 0 ? OPEN_TEXT : COMMA_TEXT, text]), CLOSE_TEXT];

/** Whether the text of a JSON value, without space around it, is `null`. */
export const isNullText = (value: Uint8Array): boolean => value.length === 4 && value[0] === LETTER_N;

const SPACE = 0x20;

/** Returns the position of the first byte from `from` that is not JSON whitespace. */
export const skipSpace = (bytes: Uint8Array, from: number): number => {
  for (let at = from; ; at++) {
    const byte = bytes[at] ?? SPACE + 1;
    if (byte > SPACE || (byte !== SPACE && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) {
      return at;
    }
  }
};

/** A JSON object with unknown fields. */
export type Fields = Readonly<Record<string, unknown>>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);
