import { testRandomLiar } from "./randomLiar.ts";

for (const seed of [1, 3, 5, 6, 7, 8]) {
  testRandomLiar(seed);
}
