import { RangePicker } from "../../chart/range";
import { HistoryCharts } from "../../history/HistoryCharts";
import { Card } from "../../ui/Page";

/** History of a volume. */
export function VolumeHistory({ name }: { name: string }) {
  return (
    <Card title="Over time" actions={<RangePicker />}>
      <HistoryCharts object={`volume/${name}`} />
    </Card>
  );
}
