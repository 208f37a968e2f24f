import { useState } from "react";
import { Dialog } from "../ui/Dialog";
import { HistoryCharts, type Span, SpanField } from "./HistoryCharts";

/** Opens what an object did over time. `title` is what people call it. */
export function HistoryButton({ object, title }: { object: string; title: string }) {
  const [shown, setShown] = useState(false);
  const [span, setSpan] = useState<Span>("3600");
  return (
    <>
      <button
        type="button"
        className="small"
        aria-label={`History of ${title}`}
        onClick={() => setShown(true)}
      >
        History
      </button>
      {shown && (
        <Dialog title={`${title} over time`} wide onClose={() => setShown(false)}>
          <SpanField value={span} onChange={setSpan} />
          <HistoryCharts object={object} span={span} />
        </Dialog>
      )}
    </>
  );
}
