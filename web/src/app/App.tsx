import { hasCode } from "@hubmesh/client";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ActivityStrip } from "../activity/ActivityStrip.tsx";
import { ClusterPage } from "../cluster/ClusterPage.tsx";
import { DemoPage } from "../demo/DemoPage.tsx";
import { Loading, NodePage } from "../node/NodePage.tsx";
import { Tree } from "../tree/Tree.tsx";
import { TreeStore } from "../tree/store.ts";
import { ErrorPanel } from "../ui/ErrorPanel.tsx";
import { Glyph } from "../ui/Glyph.tsx";
import { Header } from "./Header.tsx";
import { Home } from "./Home.tsx";
import { useLoad, useNotices, usePlace } from "./hooks.ts";
import { clusterPath, demoPath } from "./place.ts";
import { useSession } from "./session.ts";
import { SignIn } from "./SignIn.tsx";

/** Finds out who is there, then shows the page, or how to sign in. */
export function App() {
  const session = useSession();
  const { value, error, reload } = useLoad("who", async (signal) => {
    try {
      const whoami = await session.client.whoami({ signal });
      if (!whoami.anonymous) return { whoami, readable: true };
      const { children } = await session.client.children("", { limit: 1, signal });
      return { whoami, readable: children.length > 0 };
    } catch (cause) {
      if (hasCode(cause, "unauthenticated", "forbidden", "not_found")) return { whoami: undefined, readable: false };
      throw cause;
    }
  });
  if (error !== undefined) return <main class="sign-in"><ErrorPanel error={error} what="hubmesh can not be reached" onRetry={reload} /></main>;
  if (value === undefined) return <main class="sign-in"><Loading /></main>;
  session.whoami = value.whoami;
  return value.readable ? <Shell /> : <SignIn />;
}

/** What fills the page beside the tree. */
const screens: Readonly<Record<string, (() => JSX.Element) | undefined>> = { [clusterPath]: ClusterPage, [demoPath]: DemoPage };

function Shell() {
  const session = useSession();
  const place = usePlace();
  const tree = useMemo(() => new TreeStore(session.live), [session]);
  const [drawer, setDrawer] = useState(false);
  const side = useRef<HTMLElement>(null);
  const first = useRef(true);
  const Screen = screens[place.path];

  // A new place is told by moving the focus to its heading, except when the keys were used in the tree.
  useEffect(() => {
    if (first.current) {
      first.current = false;
      return;
    }
    setDrawer(false);
    if (side.current?.contains(document.activeElement) === true && matchMedia("(min-width: 800px)").matches) return;
    document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true });
  }, [place.path]);

  useEffect(() => {
    if (!drawer) return;
    side.current?.querySelector<HTMLElement>("[role=tree]")?.focus();
    const onKey = (event: KeyboardEvent): void => {
      if (event.key === "Escape") setDrawer(false);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [drawer]);

  return (
    <>
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        document.querySelector<HTMLElement>("main")?.focus();
      }}>Skip to content</a>
      <Header drawerOpen={drawer} onDrawer={Screen === undefined ? () => setDrawer(!drawer) : undefined} />
      {Screen !== undefined ? <main id="main" class="screen" tabIndex={-1}><Screen /></main> : <div class="body">
        <aside ref={side} id="side" class={drawer ? "side open" : "side"} aria-label="Tree of nodes">
          <Tree store={tree} current={place.path} onOpened={() => setDrawer(false)} />
        </aside>
        {drawer && <div class="scrim" onClick={() => setDrawer(false)} />}
        <main id="main" class="main" tabIndex={-1} inert={drawer}>
          {place.path === "" ? <Home /> : <NodePage key={place.path} path={place.path} />}
        </main>
      </div>}
      <div class={Screen === undefined ? "foot" : "foot wide"}>
        {Screen === undefined && <ActivityStrip />}
        <Notices />
      </div>
    </>
  );
}

function Notices() {
  const session = useSession();
  const notices = useNotices();
  return (
    <div class="notices" role="log" aria-live="polite" aria-label="Notices">
      {notices.map((notice) => (
        <div key={notice.id} class={`notice ${notice.kind}`}>
          <span>{notice.text}</span>
          {notice.href !== undefined && <a href={notice.href}>Open</a>}
          <button type="button" class="icon-button" aria-label="Dismiss" onClick={() => session.dismiss(notice.id)}><Glyph name="close" /></button>
        </div>
      ))}
    </div>
  );
}
