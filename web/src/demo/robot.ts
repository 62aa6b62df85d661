/** Milliseconds between two keys of the robot. */
export const keyMs = 60;
/** The text is not let grow beyond this: the robot then takes lines away from its beginning. */
export const maxChars = 6_000;

const sentences = [
  "A silo can die in the middle of a word", "the cursor does not stop", "whoever reads along sees every key", "one owner at a time writes this page",
  "the version that a save names keeps two owners apart", "an answer that got lost is looked up and not guessed", "the slots move and the node follows",
  "nothing is written twice and nothing is forgotten", "a frozen silo finds out that the others went on", "a cut link heals and the views agree again",
];

/** An endless text, key by key; the same from the same beginning. */
export function* keys(): Generator<string, never> {
  for (let n = 0; ; n++) {
    const sentence = sentences[(n * 7) % sentences.length] as string;
    yield* `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.${n % 4 === 3 ? "\n" : " "}`;
  }
}

/** A text after the robot's next key. */
export function typed(text: string, key: string): string {
  if (text.length <= maxChars) return text + key;
  const line = text.indexOf("\n", maxChars / 4);
  return (line < 0 ? text.slice(maxChars / 2) : text.slice(line + 1)) + key;
}
