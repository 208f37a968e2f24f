const TONES: Record<string, string> = {
  online: "good",
  done: "good",
  running: "busy",
  syncing: "busy",
  evacuating: "busy",
  deleting: "busy",
  degraded: "warn",
  slow: "warn",
  paused: "warn",
  offline: "warn",
  disabled: "warn",
  cancelled: "warn",
  full: "bad",
  failed: "bad",
  missing: "bad",
  absent: "bad",
  out: "bad",
};

/** A state as a word with a dot. */
export function State({ of }: { of: string }) {
  return (
    <span className={`state ${TONES[of] ?? ""}`}>
      <i aria-hidden="true" />
      {of}
    </span>
  );
}
