import { useState } from "react";

/** Lines to paste, with a button that copies them. */
export function Code({ label, text }: { label: string; text: string }) {
  const [copied, setCopied] = useState(false);
  async function copy() {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  }
  return (
    <div className="code">
      <pre tabIndex={0} aria-label={label}>
        {text}
      </pre>
      <button type="button" className="small" onClick={() => void copy()} aria-label={`Copy: ${label}`}>
        {copied ? "Copied" : "Copy"}
      </button>
    </div>
  );
}
