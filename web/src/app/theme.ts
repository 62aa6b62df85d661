/** Dark or light: as the system says, unless the person chose. The choice is read before the first paint by _theme.js. */
export type Theme = "system" | "light" | "dark";

const key = "hubmesh-theme";

export function currentTheme(): Theme {
  const theme = document.documentElement.dataset["theme"];
  return theme === "light" || theme === "dark" ? theme : "system";
}

export function setTheme(theme: Theme): void {
  const root = document.documentElement;
  if (theme === "system") delete root.dataset["theme"];
  else root.dataset["theme"] = theme;
  try {
    if (theme === "system") localStorage.removeItem(key);
    else localStorage.setItem(key, theme);
  } catch {
    // Storage may be switched off: the choice then holds until the page is left.
  }
  document.dispatchEvent(new Event("themechange"));
}

/** Whether dark is what is shown now. */
export function isDark(): boolean {
  const theme = currentTheme();
  return theme === "dark" || (theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
}

/** Calls the listener when what is shown changes between dark and light. */
export function onThemeChange(listener: () => void): () => void {
  const media = matchMedia("(prefers-color-scheme: dark)");
  media.addEventListener("change", listener);
  document.addEventListener("themechange", listener);
  return () => {
    media.removeEventListener("change", listener);
    document.removeEventListener("themechange", listener);
  };
}
