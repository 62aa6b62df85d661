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

import { Component, render, type ComponentChildren } from "preact";
import { App, crashOf } from "./app/App.tsx";
import { Session, SessionProvider } from "./app/session.ts";
import { ErrorPanel } from "./ui/ErrorPanel.tsx";

class Boundary extends Component<{ children: ComponentChildren }, { failure: unknown }> {
  override state = { failure: undefined as unknown };

  static override getDerivedStateFromError(failure: unknown): { failure: unknown } {
    return { failure };
  }

  override render() {
    if (this.state.failure === undefined) return this.props.children;
    return <main class="sign-in"><ErrorPanel error={crashOf(this.state.failure)} onRetry={() => location.reload()} /></main>;
  }
}

const root = document.getElementById("app");
if (root !== null) {
  const session = new Session(window);
  render(<SessionProvider value={session}><Boundary><App /></Boundary></SessionProvider>, root);
}
