/**
 * How far an answer, a value or a write set is verified (docs/answers.md, x-forebay-proof). `proven`: hashes bind all of it to the
 * header of its block. `checked`: something verifies a part of it. `stated`: a node said so. An answer without a grade is stated.
 */
export type Grade = "proven" | "checked" | "stated";

const RANKS: Readonly<Record<Grade, number>> = { stated: 0, checked: 1, proven: 2 };

/** Whether a grade is at least another one. */
export const isAtLeast = (grade: Grade | undefined, needed: Grade): boolean =>
  RANKS[grade ?? "stated"] >= RANKS[needed];

/** Returns the weakest of these grades. `proven` if there is none. */
export const weakestGrade = (grades: Iterable<Grade | undefined>): Grade => {
  let weakest: Grade = "proven";
  for (const grade of grades) {
    weakest = isAtLeast(grade, weakest) ? weakest : (grade ?? "stated");
  }
  return weakest;
};
