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
