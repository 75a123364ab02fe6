import { testRandomHistory } from "./randomHistory.ts";

for (let seed = 1; seed <= 12; seed++) {
  testRandomHistory(seed);
}
