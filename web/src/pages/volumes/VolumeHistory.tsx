import { useState } from "react";
import { HistoryCharts, type Span, SpanField } from "../../history/HistoryCharts";
import { Card } from "../../ui/Page";

/** History of a volume. */
export function VolumeHistory({ name }: { name: string }) {
  const [span, setSpan] = useState<Span>("3600");
  return (
    <Card title="Over time" actions={<SpanField value={span} onChange={setSpan} />}>
      <HistoryCharts object={`volume/${name}`} span={span} />
    </Card>
  );
}
