import { testInvalidItem, testWrongAnswers } from "./wrongAnswers.ts";

testInvalidItem("a batch with one invalid item is answered, with its other items");
testWrongAnswers("wrong responses of a node", true);
