import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { verifyKzgProof } from "../../src/evm/reference/kzg.ts";

/** The input of go-ethereum's test of the point evaluation precompile: versioned hash, z, y, commitment, proof. */
const INPUT =
  "01e798154708fe7789429634053cbf9f99b619f9f084048927333fce637f549b564c0a11a0f704f4fc3e8acfe0f8245f0ad1347b378fbf96e206da11a5d3630624d25032e67a7e6a4910df5834b8fe70e6bcfeeac0352434196bdf4b2485d5a18f59a8d2a1a625a17f3fea0fe5eb8c896db3764f3185481bc22f91b4aaffcca25f26936857bc3a7c2539ea8ec3a952b7873033e038326e87ed3e1276fd140253fa08e9fc25fb2d9a98527fc22a2c9612fbeafdad446cbc7bcdbdcd780af2c16a";
const part = (from: number, to: number): string => `0x${INPUT.slice(from * 2, to * 2)}`;
const [hash, z, y, commitment, proof] = [part(0, 32), part(32, 64), part(64, 96), part(96, 144), part(144, 192)];

test("a valid proof is accepted, and a proof of another value is not", () => {
  const digest = createHash("sha256")
    .update(Uint8Array.fromHex(commitment.slice(2)))
    .digest("hex");
  assert.equal(hash, `0x01${digest.slice(2)}`);
  assert.equal(verifyKzgProof(commitment, z, y, proof), true);
  assert.equal(verifyKzgProof(commitment, z, z, proof), false);
  assert.equal(verifyKzgProof(commitment, y, y, proof), false);
});

test("the zero polynomial evaluates to zero at every point", () => {
  const infinity = `0xc0${"00".repeat(47)}`;
  assert.equal(verifyKzgProof(infinity, z, `0x${"00".repeat(32)}`, infinity), true);
  assert.equal(verifyKzgProof(infinity, z, `0x${"00".repeat(31)}01`, infinity), false);
});

test("numbers outside the field and bytes that are not a point throw", () => {
  assert.throws(() => verifyKzgProof(commitment, `0x${"ff".repeat(32)}`, y, proof), /C_KZG_BADARGS/);
  assert.throws(() => verifyKzgProof(`0x${"11".repeat(48)}`, z, y, proof));
});
