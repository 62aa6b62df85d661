import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/controls.css";
import "./styles/tree.css";
import "./styles/node.css";
import "./styles/document.css";
import "./styles/edit.css";
import "./styles/lists.css";
import "./styles/screen.css";
import "./styles/cluster.css";
import "./styles/demo.css";

import { render } from "preact";
import { App } from "./app/App.tsx";
import { Session, SessionProvider } from "./app/session.ts";
import { Boundary } from "./ui/Boundary.tsx";

const root = document.getElementById("app");
if (root !== null) {
  const session = new Session(window);
  render(<SessionProvider value={session}><Boundary page onRetry={() => location.reload()}><App /></Boundary></SessionProvider>, root);
}
