import { useLayoutEffect, useRef } from "preact/hooks";
import { mapPositions } from "../text/cursor.ts";
import type { Autosaver } from "./autosave.ts";

type TextElement = HTMLTextAreaElement | HTMLInputElement;

/**
 * Keeps the cursor with the words around it when the text changes under it. The element is not
 * controlled: its text is set only when it differs, so that undo and input methods keep working.
 */
function useKeptText<T extends TextElement>(saver: Autosaver, field: string) {
  const ref = useRef<T>(null);
  const text = saver.text(field);
  useLayoutEffect(() => {
    const element = ref.current;
    if (element === null || element.value === text) return;
    const { value, selectionStart, selectionEnd, selectionDirection, scrollTop } = element;
    const [start = 0, end = 0] = mapPositions(value, text, [selectionStart ?? 0, selectionEnd ?? 0]);
    element.value = text;
    if (document.activeElement === element) element.setSelectionRange(start, end, selectionDirection ?? "none");
    element.scrollTop = scrollTop;
  }, [text]);
  return ref;
}

export function KeptInput({ id, saver, field }: { id: string; saver: Autosaver; field: string }) {
  const ref = useKeptText<HTMLInputElement>(saver, field);
  return <input ref={ref} id={id} type="text" autocomplete="off" onInput={(event) => saver.edit(field, event.currentTarget.value)} />;
}

export function KeptText(props: { id: string; saver: Autosaver; spellcheck?: boolean; invalid?: boolean; describedBy?: string; class?: string }) {
  const ref = useKeptText<HTMLTextAreaElement>(props.saver, "body");
  return (
    <textarea
      ref={ref}
      id={props.id}
      class={props.class ?? "mono edit-text"}
      spellcheck={props.spellcheck ?? false}
      aria-invalid={props.invalid}
      aria-describedby={props.describedBy}
      onInput={(event) => props.saver.edit("body", event.currentTarget.value)}
    />
  );
}
