import { HubmeshError } from "@hubmesh/client";
import { Component, type ComponentChildren } from "preact";
import { ErrorPanel } from "./ErrorPanel.tsx";

interface Props {
  /** What has failed, in words for people. */
  what?: string;
  /** What is held: once it is another one, it is drawn again. */
  of?: string;
  /** It holds the whole page. */
  page?: boolean;
  onRetry?: () => void;
  children: ComponentChildren;
}

/** Keeps a failure of what it holds to itself: what stands around it goes on. */
export class Boundary extends Component<Props, { failure: unknown }> {
  override state = { failure: undefined as unknown };

  static override getDerivedStateFromError(failure: unknown): { failure: unknown } {
    return { failure };
  }

  override componentDidUpdate(before: Props): void {
    if (before.of !== this.props.of && this.state.failure !== undefined) this.setState({ failure: undefined });
  }

  override render() {
    const { what, page, onRetry, children } = this.props;
    if (this.state.failure === undefined) return children;
    const retry = onRetry ?? ((): void => this.setState({ failure: undefined }));
    const panel = <ErrorPanel error={crashOf(this.state.failure)} {...(what === undefined ? {} : { what })} onRetry={retry} />;
    return page === true ? <main class="sign-in">{panel}</main> : panel;
  }
}

/** An error in the page itself: told, instead of an empty screen. */
export function crashOf(cause: unknown): HubmeshError {
  return new HubmeshError({ code: "page", title: "The page has failed", detail: cause instanceof Error ? cause.message : String(cause), retry: "now", cause });
}
