import { hrefOf, isPlace, placeOf, type Place } from "./place.ts";

interface Entry {
  /** Where the page was scrolled to when this entry was left. */
  scroll?: number;
}

/** The place that the page shows, on the browser's history. */
export class Router {
  place: Place;
  /** Where to scroll once the place is drawn; undefined after it was done. */
  restore: number | undefined;
  private readonly listeners = new Set<() => void>();

  constructor(private readonly window: Window) {
    window.history.scrollRestoration = "manual";
    this.place = placeOf(new URL(window.location.href));
    this.restore = (window.history.state as Entry | null)?.scroll;
    window.addEventListener("popstate", () => {
      this.restore = (window.history.state as Entry | null)?.scroll ?? 0;
      this.show();
    });
    window.document.addEventListener("click", (event) => this.clicked(event));
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  go(place: Partial<Place> & { path: string }, options: { replace?: boolean } = {}): void {
    this.goTo(hrefOf(place), options);
  }

  private goTo(href: string, options: { replace?: boolean } = {}): void {
    const { history, location } = this.window;
    const before = this.place;
    if (options.replace === true) history.replaceState({}, "", href);
    else {
      this.remember();
      if (href !== location.pathname + location.search + location.hash) history.pushState({}, "", href);
    }
    this.restore = undefined;
    this.show();
    const { path, tab, hash } = this.place;
    if (hash === "" && (before.path !== path || before.tab !== tab)) this.window.scrollTo(0, 0);
  }

  /** Keeps the scroll position with the entry that is left. */
  private remember(): void {
    this.window.history.replaceState({ scroll: this.window.scrollY } satisfies Entry, "");
  }

  private show(): void {
    this.place = placeOf(new URL(this.window.location.href));
    for (const listener of [...this.listeners]) listener();
  }

  /** Plain clicks on links to places stay in the page; all others are the browser's. */
  private clicked(event: MouseEvent): void {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest?.("a[href]") as HTMLAnchorElement | null;
    if (link === null || link.hasAttribute("download") || (link.target !== "" && link.target !== "_self")) return;
    const url = new URL(link.href, this.window.location.href);
    if (!isPlace(url, this.window.location.origin)) return;
    event.preventDefault();
    this.goTo(url.pathname + url.search + url.hash);
  }
}
