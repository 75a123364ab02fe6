import { createHash } from "node:crypto";
import { bls12_381 } from "@noble/curves/bls12-381.js";
import { p256 } from "@noble/curves/nist.js";
import { parseData } from "../../../src/ethereum/hex.ts";
import { concatBytes } from "../../../src/ethereum/rlp.ts";
import type { EthereumFork } from "../../../src/ethereum/rules.ts";

export interface PrecompileInput {
  readonly address: bigint;
  readonly input: Uint8Array;
  readonly since: EthereumFork;
}

const word = (value: bigint | number): Uint8Array => parseData(`0x${BigInt(value).toString(16).padStart(64, "0")}`);
const zeros = (bytes: number): Uint8Array => new Uint8Array(bytes);

/** A signature by the key of 0x7156526fbd7a3c72969b54f64e42c10fbb768c8a. */
const SIGNED = concatBytes([
  parseData("0x456e9aea5e197a1f1af7a3e85a3212fa4049a3ba34c2289b4c860fc0b0c64ef3"),
  word(28),
  parseData("0x9242685bf161793cc25603c231bc2f568eb630ea16aa137d2664ac8038825608"),
  parseData("0x4f8ae3bd7535248d0bd448298cc2e2071e56992d0774dc340c368ae950852ada"),
]);

const modexp = (base: bigint, exponent: bigint, modulus: bigint): Uint8Array =>
  concatBytes([word(32), word(32), word(32), word(base), word(exponent), word(modulus)]);

/** The generators of G1 and G2 (EIP-197), and a pairing whose product is one: e(P, Q) * e(-P, Q). */
const FIELD = 21_888_242_871_839_275_222_246_405_745_257_275_088_696_311_157_297_823_662_689_037_894_645_226_208_583n;
const G2 = [
  11_559_732_032_986_387_107_991_004_021_392_285_783_925_812_861_821_192_530_917_403_151_452_391_805_634n,
  10_857_046_999_023_057_135_944_570_762_232_829_481_370_756_359_578_518_086_990_519_993_285_655_852_781n,
  4_082_367_875_863_433_681_332_203_403_145_435_568_316_851_327_593_401_208_105_741_076_214_120_093_531n,
  8_495_653_923_123_431_417_604_973_247_489_272_438_418_190_587_263_600_148_770_280_649_306_958_101_930n,
];
const g2 = concatBytes(G2.map(word));
const PAIRING = concatBytes([word(1), word(2), g2, word(1), word(FIELD - 2n), g2]);

/** The input of EIP-152's test vector 5: twelve rounds over "abc". */
const BLAKE2F = parseData(
  `0x0000000c48c9bdf267e6096a3ba7ca8485ae67bb2bf894fe72f36e3cf1361d5f3af54fa5d182e6ad7f520e511f6c3e2b8c68059b6bbd41fbabd9831f79217e1319cde05b61626300${"00".repeat(124)}0300000000000000000000000000000001`,
);

/** The commitment to the zero polynomial, which is zero everywhere (EIP-4844). */
const INFINITY = Uint8Array.from([0xc0, ...zeros(47)]);
const versionedHash = Uint8Array.from([1, ...createHash("sha256").update(INFINITY).digest().subarray(1)]);
const POINT_EVALUATION = concatBytes([versionedHash, word(5), word(0), INFINITY, INFINITY]);

/** The generators of BLS12-381 (EIP-2537): coordinates of 64 bytes. */
const coordinate = (value: bigint): Uint8Array => parseData(`0x${value.toString(16).padStart(128, "0")}`);
const blsG1 = (point: typeof bls12_381.G1.Point.BASE): Uint8Array => {
  const { x, y } = point.toAffine();
  return concatBytes([coordinate(x), coordinate(y)]);
};
const blsG2 = (point: typeof bls12_381.G2.Point.BASE): Uint8Array => {
  const { x, y } = point.toAffine();
  return concatBytes([x.c0, x.c1, y.c0, y.c1].map(coordinate));
};
const [P, Q] = [bls12_381.G1.Point.BASE, bls12_381.G2.Point.BASE];
const [P1, P2, Q1] = [blsG1(P), blsG1(P.negate()), blsG2(Q)];

/** Hash, r, s and public key of a signature that P256VERIFY accepts. */
const p256Signed = (): Uint8Array => {
  const [secret, digest] = [word(5), SIGNED.subarray(0, 32)];
  const signature = p256.sign(digest, secret, { prehash: false, lowS: false });
  return concatBytes([digest, signature, p256.getPublicKey(secret, false).subarray(1)]);
};

const input = (since: EthereumFork, address: number, bytes: Uint8Array): PrecompileInput => ({
  address: BigInt(address),
  input: bytes,
  since,
});

/** Inputs that precompiles accept, and some of wrong length. */
export const PRECOMPILE_INPUTS: readonly PrecompileInput[] = [
  input("chainstart", 1, SIGNED),
  input("chainstart", 1, SIGNED.subarray(0, 100)),
  input("chainstart", 2, SIGNED),
  input("chainstart", 3, SIGNED),
  input("chainstart", 4, SIGNED.subarray(0, 77)),
  input("byzantium", 5, modexp(3n, 5n, 7n)),
  input("byzantium", 5, modexp(FIELD, FIELD - 2n, FIELD - 1n)),
  input("byzantium", 5, modexp(2n, 0n, 0n)),
  input("byzantium", 6, concatBytes([word(1), word(2), word(1), word(2)])),
  input("byzantium", 6, concatBytes([word(1), word(3)])),
  input("byzantium", 7, concatBytes([word(1), word(2), word(9)])),
  input("byzantium", 8, PAIRING),
  input("byzantium", 8, PAIRING.subarray(0, 192)),
  input("byzantium", 8, PAIRING.subarray(0, 191)),
  input("istanbul", 9, BLAKE2F),
  input("istanbul", 9, BLAKE2F.subarray(0, 212)),
  input("cancun", 10, POINT_EVALUATION),
  input("cancun", 10, POINT_EVALUATION.subarray(0, 191)),
  input("prague", 11, zeros(256)),
  input("prague", 11, concatBytes([P1, P1])),
  input("prague", 11, concatBytes([P1, P1.toReversed()])),
  input("prague", 12, concatBytes([P1, word(3)])),
  input("prague", 12, concatBytes([P1, word(3), P2, word(FIELD)])),
  input("prague", 13, concatBytes([Q1, Q1])),
  input("prague", 14, concatBytes([Q1, word(5)])),
  input("prague", 15, concatBytes([P1, Q1, P2, Q1])),
  input("prague", 15, concatBytes([P1, Q1])),
  input("prague", 16, coordinate(FIELD)),
  input("prague", 17, concatBytes([coordinate(FIELD), coordinate(7n)])),
  input("osaka", 256, p256Signed()),
  input("osaka", 256, concatBytes([SIGNED, word(7)])),
];
