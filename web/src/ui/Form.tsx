import { useState, type FormEvent, type ReactNode } from "react";

interface Props {
  /** The button's label: the action. */
  action: string;
  danger?: boolean;
  disabled?: boolean;
  onSubmit: () => Promise<void>;
  children: ReactNode;
}

/** Fields and one button; errors are shown beside it. */
export function Form({ action, danger, disabled, onSubmit, children }: Props) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string>();

  function submit(event: FormEvent) {
    event.preventDefault();
    if (busy || disabled) return;
    setBusy(true);
    setError(undefined);
    onSubmit().then(
      () => setBusy(false),
      (problem: unknown) => {
        setBusy(false);
        setError(problem instanceof Error ? problem.message : String(problem));
      },
    );
  }

  return (
    <form className="form" onSubmit={submit}>
      {children}
      {error !== undefined && (
        <p className="problem" role="alert">
          {error}
        </p>
      )}
      <footer>
        <button type="submit" className={danger ? "danger" : "primary"} disabled={busy || disabled}>
          {busy ? "Working…" : action}
        </button>
      </footer>
    </form>
  );
}
