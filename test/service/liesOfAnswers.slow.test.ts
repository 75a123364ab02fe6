import { testWrongAnswers } from "./wrongAnswers.ts";

testWrongAnswers("other wrong responses of a node", false);
