import { testRandomLiar } from "./randomLiar.ts";

for (const seed of [2, 4]) {
  testRandomLiar(seed);
}
