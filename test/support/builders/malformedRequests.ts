/** A malformed request and the exact response. */
export interface MalformedRequest {
  readonly name: string;
  readonly body: string | Uint8Array;
  readonly contentType?: string;
  readonly status: number;
  readonly answer: string;
}

/** The limits that the table assumes. */
export const MALFORMED_LIMITS = { maxBodyBytes: 100_000, maxBatch: 5 };

const error = (code: number, message: string, id = "null"): string =>
  `{"jsonrpc":"2.0","id":${id},"error":{"code":${code},"message":${JSON.stringify(message)}}}`;

const INVALID_JSON = error(-32700, "Parse error: invalid JSON");
const INVALID_UTF8 = error(-32700, "Parse error: invalid UTF-8");
const NOT_AN_OBJECT = error(-32600, "Invalid request: not an object");
const TOO_DEEP = error(-32600, "Invalid request: more than 256 levels");

const version = (id?: string): string => error(-32600, 'Invalid request: jsonrpc must be "2.0"', id);
const method = (id?: string): string => error(-32600, "Invalid request: method must be a string", id);
const params = (id?: string): string => error(-32600, "Invalid request: params must be an array", id);
const ID = error(-32600, "Invalid request: id must be a string, a number or null");

const cases = (
  status: number,
  rows: readonly (readonly [name: string, body: string | Uint8Array, answer: string])[],
): MalformedRequest[] => rows.map(([name, body, answer]) => ({ name, body, status, answer }));

const head = '{"jsonrpc":"2.0","id":1,"method":"m"';
const good = `${head}}`;
const goodAnswer = '{"jsonrpc":"2.0","id":1,"result":"forwarded m"}';
const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
const bytes = (...parts: (string | readonly number[])[]): Uint8Array =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from(part))));
const inParams = (text: string): string => `${head},"params":[${text}]}`;

const PARSE = cases(200, [
  ["nothing", "", INVALID_JSON],
  ["white space", " \n\t\r ", INVALID_JSON],
  ["a word", "hello", INVALID_JSON],
  ["a form", "jsonrpc=2.0&method=m", INVALID_JSON],
  ["XML", "<methodCall/>", INVALID_JSON],
  ["cut in a key", '{"jsonrpc":"2.0","id":1,"meth', INVALID_JSON],
  ["cut before the end", head, INVALID_JSON],
  ["two requests", `${good}${good}`, INVALID_JSON],
  ["something behind", `${good} x`, INVALID_JSON],
  ["a zero behind", `${good}\u0000`, INVALID_JSON],
  ["a comma behind the last member", `${head},}`, INVALID_JSON],
  ["a comma behind the last item", `[${good},]`, INVALID_JSON],
  ["no comma between items", `[${good} ${good}]`, INVALID_JSON],
  ["an open batch", `[${good}`, INVALID_JSON],
  ["single quotes", "{'jsonrpc':'2.0'}", INVALID_JSON],
  ["bare keys", "{jsonrpc:2}", INVALID_JSON],
  ["a comment", `/* hi */${good}`, INVALID_JSON],
  ["no colon", '{"jsonrpc" "2.0"}', INVALID_JSON],
  ["a byte order mark", `\uFEFF${good}`, INVALID_JSON],
  ["another byte order mark", `\uFEFF[${good}]`, INVALID_JSON],
  ["a no-break space", `\u00A0${good}`, INVALID_JSON],
  ["UTF-16", Buffer.from(good, "utf16le"), INVALID_JSON],
  ["an escape that is none", inParams('"\\x41"'), INVALID_JSON],
  ["an escape of three digits", inParams('"\\u041"'), INVALID_JSON],
  ["a line break in a string", inParams('"a\nb"'), INVALID_JSON],
  ["a control character in a string", inParams('"\u0001"'), INVALID_JSON],
  ["an open string", inParams('"a'), INVALID_JSON],
  ["a leading zero", inParams("01"), INVALID_JSON],
  ["hexadecimal", inParams("0x1"), INVALID_JSON],
  ["a plus", inParams("+1"), INVALID_JSON],
  ["a point without digits", inParams("1."), INVALID_JSON],
  ["an exponent without digits", inParams("1e"), INVALID_JSON],
  ["only a minus", inParams("-"), INVALID_JSON],
  ["NaN", inParams("NaN"), INVALID_JSON],
  ["Infinity", inParams("-Infinity"), INVALID_JSON],
  ["undefined", inParams("undefined"), INVALID_JSON],
  ["True", inParams("True"), INVALID_JSON],
  ["half a literal", inParams("nul"), INVALID_JSON],
  ["brackets that do not match", inParams("[}"), INVALID_JSON],
  ["a byte that is no UTF-8", bytes('{"jsonrpc":"2.0","id":"', [0xff], '","method":"m"}'), INVALID_UTF8],
  ["a long form of a slash", bytes('{"jsonrpc":"2.0","id":"', [0xc0, 0xaf], '","method":"m"}'), INVALID_UTF8],
  ["half of a pair in UTF-8", bytes('["', [0xed, 0xa0, 0x80], '"]'), INVALID_UTF8],
  ["a character cut off", bytes('"', [0xe2, 0x82]), INVALID_UTF8],
  ["compressed", bytes([0x1f, 0x8b, 0x08, 0x00, 0x00]), INVALID_UTF8],
]);

const INVALID = cases(200, [
  ["a number", "1", NOT_AN_OBJECT],
  ["a string", '"eth_chainId"', NOT_AN_OBJECT],
  ["null", "null", NOT_AN_OBJECT],
  ["true", "true", NOT_AN_OBJECT],
  ["an empty object", "{}", version()],
  ["no version", '{"id":1,"method":"m"}', version("1")],
  ["version 1.0", '{"jsonrpc":"1.0","id":2,"method":"m"}', version("2")],
  ["a version that is a number", '{"jsonrpc":2.0,"id":"x","method":"m"}', version('"x"')],
  ["no version and a notification", '{"method":"m"}', version()],
  ["a version that is overruled", '{"jsonrpc":"2.0","id":1,"method":"m","jsonrpc":"1.0"}', version("1")],
  ["no method", '{"jsonrpc":"2.0","id":12345678901234567890}', method("12345678901234567890")],
  ["a method that is a number", '{"jsonrpc":"2.0","id":1,"method":1}', method("1")],
  ["a method that is null", '{"jsonrpc":"2.0","id":"\\u0041","method":null}', method('"\\u0041"')],
  ["a method in a list", '{"jsonrpc":"2.0","id":1,"method":["m"]}', method("1")],
  ["a response", '{"jsonrpc":"2.0","id":1,"result":"0x1"}', method("1")],
  ["an id that is true", '{"jsonrpc":"2.0","id":true,"method":"m"}', ID],
  ["an id that is an object", '{"jsonrpc":"2.0","id":{},"method":"m"}', ID],
  ["an id that is a list", '{"jsonrpc":"2.0","id":[1],"method":"m"}', ID],
  ["params that are a string", `${head},"params":"0x1"}`, params("1")],
  ["params that are a number", `${head},"params":1}`, params("1")],
  ["params that are false", '{"jsonrpc":"2.0","method":"m","params":false}', params()],
  [
    "named params",
    `${head},"params":{"a":1}}`,
    error(-32602, "params must be an array: named parameters are not supported", "1"),
  ],
  ["an empty batch", "[]", error(-32600, "Invalid request: empty batch")],
  ["an empty batch with space", " [ ] ", error(-32600, "Invalid request: empty batch")],
  ["a batch of a number", "[1]", `[${NOT_AN_OBJECT}]`],
  ["a batch of three numbers", "[1,2,3]", `[${NOT_AN_OBJECT},${NOT_AN_OBJECT},${NOT_AN_OBJECT}]`],
  ["a batch in a batch", `[[${good}]]`, `[${NOT_AN_OBJECT}]`],
  ["a batch with one bad item", `[${good},{"id":7},${good}]`, `[${goodAnswer},${version("7")},${goodAnswer}]`],
  ["levels without end", nested(40_000), TOO_DEEP],
  ["levels that are never closed", "[".repeat(90_000), TOO_DEEP],
  ["objects without end", '{"a":'.repeat(10_000), TOO_DEEP],
  ["one level too many", inParams(nested(255)), TOO_DEEP],
]);

const LIMITS = cases(400, [
  ["a batch over its limit", `[${Array(6).fill(good)}]`, error(-32600, "Invalid request: batch of more than 5 calls")],
  [
    "a body over its limit",
    inParams(`"${"x".repeat(100_000)}"`),
    error(-32600, "Invalid request: body is larger than 100000 bytes"),
  ],
]);

const TYPES: readonly MalformedRequest[] = ["text/plain", "application/xml", "", "application/json5"].map(
  (contentType) => ({
    name: `content type "${contentType}"`,
    body: good,
    contentType,
    status: 415,
    answer: error(-32600, "Invalid request: Content-Type must be application/json, not encoded"),
  }),
);

export const MALFORMED_REQUESTS: readonly MalformedRequest[] = [...PARSE, ...INVALID, ...LIMITS, ...TYPES];
