import { toasts, useToasts } from "./toasts";

/** The messages in the corner of the page, which screen readers announce. */
export function ToastList() {
  const shown = useToasts();
  return (
    <div className="toasts" role="status" aria-live="polite" aria-label="Messages">
      {shown.map((toast) => (
        <div key={toast.id} className={`toast ${toast.tone}`}>
          <span>{toast.text}</span>
          {toast.undo && (
            <button
              type="button"
              className="small"
              onClick={() => {
                toasts.close(toast.id);
                toast.undo?.().catch((error: unknown) => toasts.failed(error));
              }}
            >
              Undo
            </button>
          )}
          <button
            type="button"
            className="quiet small"
            aria-label={`Close message: ${toast.text}`}
            onClick={() => toasts.close(toast.id)}
          >
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}
