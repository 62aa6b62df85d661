import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";

export interface MenuItem {
  label: string;
  run: () => void;
  danger?: boolean;
  checked?: boolean;
}

/** A menu button: arrows, Home and End move, Escape and Tab leave, a click outside closes. */
export function Menu(props: { label: string; button: ComponentChildren; items: MenuItem[]; head?: ComponentChildren }) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();

  useEffect(() => {
    if (!open) return;
    root.current?.querySelector<HTMLElement>("[role^=menuitem]")?.focus();
    const outside = (event: Event): void => {
      if (!(root.current?.contains(event.target as Node) ?? false)) setOpen(false);
    };
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, [open]);

  const close = (): void => {
    setOpen(false);
    button.current?.focus();
  };
  const onKey = (event: KeyboardEvent): void => {
    if (!open) return;
    if (event.key === "Escape") return close();
    if (event.key === "Tab") return setOpen(false);
    const items = [...(root.current?.querySelectorAll<HTMLElement>("[role^=menuitem]") ?? [])];
    const at = items.indexOf(document.activeElement as HTMLElement);
    const moves: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 };
    const to = moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    items[(to + items.length) % items.length]?.focus();
  };

  return (
    <div class="menu" ref={root} onKeyDown={onKey}>
      <button ref={button} type="button" class="icon-button" aria-haspopup="menu" aria-expanded={open} aria-controls={id} aria-label={props.label} title={props.label} onClick={() => setOpen(!open)}>
        {props.button}
      </button>
      {open && (
        <div class="menu-list" id={id} role="menu" aria-label={props.label}>
          {props.head !== undefined && <div class="menu-head">{props.head}</div>}
          {props.items.map((item) => (
            <button
              key={item.label}
              type="button"
              role={item.checked === undefined ? "menuitem" : "menuitemradio"}
              aria-checked={item.checked}
              tabIndex={-1}
              class={item.danger === true ? "danger" : ""}
              onClick={() => {
                close();
                item.run();
              }}
            >
              {item.label}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
