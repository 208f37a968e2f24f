import { Component, type ReactNode } from "react";

interface Props {
  children: ReactNode;
}

/** Keeps a fault of one page from taking the others with it. */
export class ErrorBoundary extends Component<Props, { error?: Error }> {
  override state: { error?: Error } = {};

  static getDerivedStateFromError(error: unknown): { error: Error } {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <div className="problem" role="alert">
        <h1>This page failed</h1>
        <p>
          {error.message}. The daemon is not affected. Show the page again; if it fails again, report this
          message with the version of Convect.
        </p>
        <button type="button" onClick={() => this.setState({ error: undefined as never })}>
          Show again
        </button>
      </div>
    );
  }
}
