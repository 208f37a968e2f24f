import { useEffect, useId, useRef, type ReactNode } from "react";

interface Props {
  title: string;
  onClose: () => void;
  wide?: boolean;
  children: ReactNode;
}

/** A modal dialog: its first field has the focus, the browser keeps it in the dialog, and Escape closes it. */
export function Dialog({ title, onClose, wide, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const shown = dialog.current;
    if (shown && !shown.open) {
      shown.showModal();
      // The browser chooses the button that closes it, and React's autoFocus came before it was visible.
      shown.querySelector<HTMLElement>("input:not([type=checkbox]), select, textarea")?.focus();
    }
    return () => shown?.close();
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby={id} className={wide ? "dialog wide" : "dialog"} onClose={onClose}>
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" className="quiet" aria-label="Close" onClick={onClose}>
          ✕
        </button>
      </header>
      {children}
    </dialog>
  );
}
