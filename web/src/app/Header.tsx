import { useEffect, useState } from "preact/hooks";
import { Search } from "../search/Search.tsx";
import { Glyph, Logo } from "../ui/Glyph.tsx";
import { Menu } from "../ui/Menu.tsx";
import { Connection } from "./Connection.tsx";
import { clusterPath } from "./place.ts";
import { useSession } from "./session.ts";
import { currentTheme, onThemeChange, setTheme, type Theme } from "./theme.ts";

/** `onDrawer` undefined: there is no tree here. */
export function Header(props: { drawerOpen: boolean; onDrawer: (() => void) | undefined }) {
  return (
    <header class="top">
      {props.onDrawer !== undefined && (
        <button type="button" class="icon-button drawer-button" aria-label="Tree" aria-expanded={props.drawerOpen} aria-controls="side" onClick={props.onDrawer}>
          <Glyph name="menu" />
        </button>
      )}
      <a class="brand" href="/" aria-label="hubmesh, all spaces"><Logo /><span>hubmesh</span></a>
      <Search />
      <div class="top-right">
        <Connection />
        <ThemeMenu />
        <UserMenu />
      </div>
    </header>
  );
}

function ThemeMenu() {
  const [theme, show] = useState<Theme>(currentTheme());
  useEffect(() => onThemeChange(() => show(currentTheme())), []);
  const item = (value: Theme, label: string) => ({ label, checked: theme === value, run: () => setTheme(value) });
  return (
    <Menu
      label="Theme"
      button={<Glyph name={theme === "system" ? "system" : theme === "dark" ? "moon" : "sun"} />}
      items={[item("system", "As the system"), item("light", "Light"), item("dark", "Dark")]}
    />
  );
}

function UserMenu() {
  const session = useSession();
  const { whoami } = session;
  if (whoami === undefined) return null;
  const signOut = (): void => {
    session.client.logout().then(() => location.assign("/"), (cause: unknown) => session.notifyError("Not signed out", cause));
  };
  const name = whoami.name || whoami.subject;
  return (
    <Menu
      label={whoami.anonymous ? "Not signed in" : `Signed in as ${name}`}
      button={<span class="avatar" aria-hidden="true">{whoami.anonymous ? <Glyph name="person" /> : ([...name][0] ?? "?").toUpperCase()}</span>}
      head={whoami.anonymous ? "Not signed in: you see what is public" : <><strong>{name}</strong>{whoami.admin && <span class="badge">admin</span>}<br /><span class="muted">{whoami.subject}</span></>}
      items={whoami.anonymous ? [] : [...(whoami.admin ? [{ label: "Cluster", run: () => session.router.go({ path: clusterPath }) }] : []), { label: "Sign out", run: signOut }]}
    />
  );
}
