import { testRandomHistory } from "./randomHistory.ts";

for (let seed = 13; seed <= 100; seed++) {
  testRandomHistory(seed);
}
