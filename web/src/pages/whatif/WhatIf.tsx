import { useState } from "react";
import { api } from "../../api/client";
import type { Forecast, ForecastPoint } from "../../api/types";
import { bytes, count, milliseconds } from "../../format";
import { useData } from "../../live/useData";
import { SelectField } from "../../ui/Field";
import { Card, Page } from "../../ui/Page";
import { Table, type Column } from "../../ui/Table";
import { Curve } from "./Curve";

const COLUMNS: Column<ForecastPoint>[] = [
  {
    name: "Fast tier",
    width: "minmax(7rem, 1fr)",
    cell: (row) => (row.percent === 100 ? <b>{bytes(row.bytes)} (today)</b> : bytes(row.bytes)),
  },
  { name: "Relative", width: "6rem", right: true, cell: (row) => `${row.percent} %` },
  { name: "Hit rate", width: "7rem", right: true, cell: (row) => share(row.hits ?? row.lru_hits) },
  { name: "LRU", width: "6rem", right: true, wide: true, cell: (row) => share(row.lru_hits) },
  {
    name: "Mean latency",
    width: "7rem",
    right: true,
    cell: (row) => (row.mean_ns ? milliseconds(row.mean_ns / 1e6) : "–"),
  },
];

function share(part: number): string {
  return `${(part * 100).toFixed(1)} %`;
}

function told(forecast: Forecast): string {
  const today = forecast.points.find((point) => point.percent === 100);
  const double = forecast.points.find((point) => point.percent === 200);
  const of = (point: ForecastPoint) => point.hits ?? point.lru_hits;
  if (!today || !double) return "";
  const more = (of(double) - of(today)) * 100;
  return more < 1
    ? "Doubling the fast tier would change little."
    : `Doubling the fast tier would raise the hit rate by ${more.toFixed(1)} percentage points.`;
}

/** Forecasts for other sizes of the fast tier, from recent traffic. */
export function WhatIf() {
  const pools = useData("pools", (signal) => api.get("/v1/pools", { signal })).value?.items ?? [];
  const tiered = pools.filter((pool) => pool.fast_capacity > 0);
  const [chosen, setChosen] = useState<string>();
  const pool = chosen ?? tiered[0]?.name;
  return (
    <Page title="What if" about="Forecast for other sizes of the fast tier, from recent traffic.">
      {tiered.length > 1 && pool && (
        <SelectField
          label="Pool"
          value={pool}
          options={tiered.map((known) => [known.name, known.name] as const)}
          onChange={setChosen}
        />
      )}
      {pool === undefined ? (
        <p className="empty">No pool has both a fast and a slow tier.</p>
      ) : (
        <PoolForecast key={pool} pool={pool} />
      )}
    </Page>
  );
}

function PoolForecast({ pool }: { pool: string }) {
  const { value, error } = useData(
    `what-if ${pool}`,
    (signal) => api.get("/v1/pools/{pool}/what-if", { path: { pool }, signal }),
    30,
  );
  const [chosen, setChosen] = useState("");
  if (error && !value) return <p className="problem">{error}</p>;
  if (!value) return null;
  const forecast = value.volumes.find((known) => known.volume === chosen) ?? value.pool;
  return (
    <Card title={forecast.volume ? `${pool}/${forecast.volume}` : pool}>
      {value.volumes.length > 0 && (
        <SelectField
          label="Of"
          value={chosen}
          options={[
            ["", "whole pool"] as const,
            ...value.volumes.map((known) => [known.volume ?? "", known.volume ?? ""] as const),
          ]}
          onChange={setChosen}
        />
      )}
      {forecast.uses === 0 ? (
        <p className="empty">No recent traffic to forecast from.</p>
      ) : (
        <>
          <p>
            {told(forecast)}{" "}
            <span className="about">
              Based on {count(forecast.uses)} accesses to {bytes(forecast.used_bytes)}.
            </span>
          </p>
          <Curve points={forecast.points} />
          <Table
            label="Sizes"
            columns={COLUMNS}
            rows={forecast.points}
            rowKey={(row) => String(row.percent)}
            empty=""
          />
        </>
      )}
    </Card>
  );
}
