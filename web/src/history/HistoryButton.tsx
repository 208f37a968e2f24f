import { useState } from "react";
import { RangePicker } from "../chart/range";
import { Dialog } from "../ui/Dialog";
import { HistoryCharts } from "./HistoryCharts";

/** Opens what an object did over time. `title` is what people call it. */
export function HistoryButton({ object, title }: { object: string; title: string }) {
  const [shown, setShown] = useState(false);
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
          <RangePicker />
          <HistoryCharts object={object} />
        </Dialog>
      )}
    </>
  );
}
