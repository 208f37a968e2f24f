import { useState } from "react";
import { api } from "../../api/client";
import type { QosPolicy, QosTier, QosVolume } from "../../api/types";
import { bytes, count, milliseconds } from "../../format";
import { RangePicker } from "../../chart/range";
import { HistoryCharts } from "../../history/HistoryCharts";
import { useData } from "../../live/useData";
import { useMay } from "../../session";
import { Confirm, type Confirmation } from "../../ui/Confirm";
import { SelectField } from "../../ui/Field";
import { Card, Page } from "../../ui/Page";
import { Table, type Column } from "../../ui/Table";
import { EditPolicy } from "./EditPolicy";
import { GivePolicy } from "./GivePolicy";
import { Groups } from "./Groups";
import { allowed, byLevel, guaranteed, type Level, met, timeGoesTo } from "./policies";

const VOLUMES: Column<QosVolume>[] = [
  { name: "Volume", width: "minmax(7rem, 1fr)", cell: (row) => row.volume },
  { name: "Policy", width: "minmax(8rem, 1fr)", cell: (row) => row.qos.policy.name },
  { name: "Level", width: "4rem", right: true, wide: true, cell: (row) => row.qos.policy.level },
  {
    name: "Guaranteed",
    width: "minmax(7rem, 2fr)",
    wide: true,
    cell: (row) => guaranteed(row.qos.policy),
  },
  { name: "IOPS", width: "5rem", right: true, cell: (row) => count(row.qos.iops) },
  { name: "Held", width: "5rem", right: true, wide: true, cell: (row) => count(row.qos.held) },
  { name: "Met", width: "5rem", right: true, cell: (row) => met(row.qos) },
  {
    name: "Bottleneck",
    width: "minmax(9rem, 1fr)",
    wide: true,
    cell: (row) => timeGoesTo(row.qos),
  },
];

const LEVELS: Column<Level>[] = [
  { name: "Level", width: "4rem", right: true, cell: (row) => row.policy.level },
  { name: "Policy", width: "minmax(8rem, 1fr)", cell: (row) => row.policy.name },
  { name: "Volumes", width: "5rem", right: true, cell: (row) => row.volumes },
  { name: "Guaranteed IOPS", width: "8rem", right: true, cell: (row) => count(row.promisedIops) },
  { name: "IOPS", width: "5rem", right: true, cell: (row) => count(row.iops) },
  { name: "Met", width: "5rem", right: true, cell: (row) => met(row) },
];

const TIERS: Column<QosTier>[] = [
  { name: "Tier", width: "minmax(5rem, 1fr)", cell: (row) => row.tier },
  { name: "Drives", width: "5rem", right: true, cell: (row) => row.drives },
  { name: "IOPS", width: "7rem", right: true, cell: (row) => count(row.iops) },
  {
    name: "Bandwidth",
    width: "9rem",
    right: true,
    wide: true,
    cell: (row) => `${bytes(row.bandwidth)}/s`,
  },
  {
    name: "Read latency",
    width: "7rem",
    right: true,
    cell: (row) => (row.read_ns ? milliseconds(row.read_ns / 1e6) : "–"),
  },
];

/** Guarantees of the volumes' policies, and attained service. */
export function Qos() {
  const pools = useData("pools", (signal) => api.get("/v1/pools", { signal })).value?.items ?? [];
  const [chosen, setChosen] = useState<string>();
  const pool = chosen ?? pools[0]?.name;
  return (
    <Page title="Quality of service" about="Guarantees of the volumes' policies, and measured performance.">
      {pools.length > 1 && pool && (
        <SelectField
          label="Pool"
          value={pool}
          options={pools.map((known) => [known.name, known.name] as const)}
          onChange={setChosen}
        />
      )}
      {pool === undefined ? (
        <p className="empty">No pools.</p>
      ) : (
        <>
          <PoolVolumes key={`volumes ${pool}`} pool={pool} />
          <Policies key={`policies ${pool}`} pool={pool} />
        </>
      )}
    </Page>
  );
}

function usePolicies(pool: string): QosPolicy[] {
  const policies = useData(`policies ${pool}`, (signal) =>
    api.get("/v1/pools/{pool}/qos/policies", { path: { pool }, signal }),
  );
  return policies.value?.items ?? [];
}

function PoolVolumes({ pool }: { pool: string }) {
  const operator = useMay("operator");
  const [giving, setGiving] = useState(false);
  const policies = usePolicies(pool);
  const { value, error } = useData(
    `qos ${pool}`,
    (signal) => api.get("/v1/pools/{pool}/qos", { path: { pool }, signal }),
    2,
  );
  const volumes = useData(`volumes ${pool}`, (signal) => api.get("/v1/volumes", { query: { pool }, signal }))
    .value?.items;
  if (error && !value) return <p className="problem">{error}</p>;
  if (!value) return null;
  const names = (volumes ?? []).map((volume) => volume.name);
  const actions = operator && names.length > 0 && (
    <button type="button" className="primary" onClick={() => setGiving(true)}>
      Assign a policy
    </button>
  );
  const levels = byLevel(value);
  return (
    <>
      <Card title="By level">
        <p className={value.check.verdict === "refused" ? "warn" : "about"}>{value.check.message}.</p>
        {Boolean(value.check.fast_guaranteed) && (
          <p className="about">
            Fast tier: {bytes(value.check.fast_guaranteed ?? 0)} guaranteed by policies, pins and floors, of
            at most {bytes(value.check.fast_limit ?? 0)}.
          </p>
        )}
        {value.check.needs_fast && <p className="about">{value.check.needs_fast}.</p>}
        <Table
          label="Policies in use"
          columns={LEVELS}
          rows={levels}
          rowKey={(row) => String(row.policy.id)}
          empty="No volume has a policy."
        />
      </Card>
      <Card title="Demonstrated capacity of the tiers">
        <Table
          label="Demonstrated capacity of the tiers"
          columns={TIERS}
          rows={value.check.tiers}
          rowKey={(row) => row.tier}
          empty="The pool has no drives."
        />
      </Card>
      {levels.length > 0 && <OverTime pool={pool} policies={levels.map((level) => level.policy.name)} />}
      <Card title={`Volumes of ${pool}`} actions={actions}>
        <Table
          label="Volumes with policies of their own"
          columns={VOLUMES}
          rows={value.volumes}
          rowKey={(row) => row.volume}
          empty="No volume has a policy of its own."
        />
        {giving && (
          <GivePolicy
            pool={pool}
            volumes={names}
            policies={policies}
            groups={value.groups}
            onClose={() => setGiving(false)}
          />
        )}
      </Card>
      <Groups pool={pool} groups={value.groups} policies={policies} />
    </>
  );
}

/** History of all volumes with a policy, together. */
function OverTime({ pool, policies }: { pool: string; policies: string[] }) {
  const [chosen, setChosen] = useState<string>();
  const policy = chosen !== undefined && policies.includes(chosen) ? chosen : policies[0]!;
  const actions = (
    <>
      <SelectField
        label="Policy"
        value={policy}
        options={policies.map((name) => [name, name] as const)}
        onChange={setChosen}
      />
      <RangePicker />
    </>
  );
  return (
    <Card title="Over time" actions={actions}>
      <HistoryCharts object={`policy/${pool}/${policy}`} />
    </Card>
  );
}

function Policies({ pool }: { pool: string }) {
  const operator = useMay("operator");
  const policies = usePolicies(pool);
  const [edited, setEdited] = useState<{ of?: QosPolicy }>();
  const [confirm, setConfirm] = useState<Confirmation>();
  const columns: Column<QosPolicy>[] = [
    { name: "Policy", width: "minmax(8rem, 1fr)", cell: (row) => row.name },
    { name: "Level", width: "4rem", right: true, cell: (row) => row.level },
    { name: "Guaranteed", width: "minmax(9rem, 2fr)", wide: true, cell: (row) => guaranteed(row) },
    { name: "At most", width: "minmax(7rem, 1fr)", wide: true, cell: (row) => allowed(row) },
    { name: "Weight", width: "5rem", right: true, wide: true, cell: (row) => row.weight },
  ];
  if (operator) {
    columns.push({
      name: "",
      width: "10rem",
      right: true,
      cell: (row) =>
        row.built_in ? (
          <span className="about">built in</span>
        ) : (
          <>
            <button
              type="button"
              className="small"
              aria-label={`Change ${row.name}`}
              onClick={() => setEdited({ of: row })}
            >
              Change
            </button>{" "}
            <button
              type="button"
              className="small"
              aria-label={`Delete ${row.name}`}
              onClick={() =>
                setConfirm({
                  title: `Delete ${pool}/${row.name}`,
                  what: "No volume may use the policy.",
                  name: row.name,
                  action: "Delete policy",
                  run: () =>
                    api.delete("/v1/pools/{pool}/qos/policies/{policy}", {
                      path: { pool, policy: row.name },
                    }),
                })
              }
            >
              Delete
            </button>
          </>
        ),
    });
  }
  const actions = operator && (
    <button type="button" onClick={() => setEdited({})}>
      New policy
    </button>
  );
  return (
    <Card title="Policies" actions={actions}>
      <Table
        label="Policies"
        columns={columns}
        rows={policies}
        rowKey={(row) => String(row.id)}
        empty="No policies."
      />
      {edited && <EditPolicy pool={pool} of={edited.of} onClose={() => setEdited(undefined)} />}
      {confirm && <Confirm of={confirm} onClose={() => setConfirm(undefined)} />}
    </Card>
  );
}
