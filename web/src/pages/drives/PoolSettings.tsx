import { useState } from "react";
import { api } from "../../api/client";
import type { Pool } from "../../api/types";
import { bytes, parseBytes } from "../../format";
import { Dialog } from "../../ui/Dialog";
import { TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { levels } from "./layouts";

/** A size that may be left out: 0 then, nothing when it is none. */
function sizeOr0(text: string): number | undefined {
  return text.trim() === "" ? 0 : parseBytes(text);
}

/** Settings of a pool, and work on the whole pool. Each part is a form of its own. */
export function PoolSettings({ pool, onClose }: { pool: Pool; onClose: () => void }) {
  const path = { pool: pool.name };
  const daily = pool.promotion_budget?.daily;
  const [budget, setBudget] = useState(daily ? bytes(daily) : "");
  const [warn, setWarn] = useState((pool.warn_at ?? []).join(", "));
  const [rate, setRate] = useState("");
  const [done, setDone] = useState("");
  const [wanted, at, pace] = [sizeOr0(budget), levels(warn), sizeOr0(rate)];
  return (
    <Dialog title={`Settings of ${pool.name}`} onClose={onClose}>
      <Form
        action="Set budget"
        disabled={wanted === undefined || wanted === (daily ?? 0)}
        onSubmit={async () => {
          await api.put("/v1/pools/{pool}", { path, body: { promotion_budget: wanted ?? null } });
          setDone("Budget set.");
        }}
      >
        <TextField
          label="Promotion budget per day"
          value={budget}
          onChange={setBudget}
          placeholder="unlimited"
          hint="For example 200G"
        />
      </Form>
      <Form
        action="Set levels"
        disabled={at === undefined}
        onSubmit={async () => {
          await api.put("/v1/pools/{pool}/warnings", { path, body: { at: at ?? [] } });
          setDone("Levels set.");
        }}
      >
        <TextField
          label="Warning levels"
          value={warn}
          onChange={setWarn}
          placeholder="never"
          hint="Percentages, separated by commas: 80, 90, 95"
        />
      </Form>
      <Form
        action="Start scrub"
        disabled={pool.scrub?.state === "running" || pace === undefined}
        onSubmit={async () => {
          await api.post("/v1/pools/{pool}/scrub", { path, body: { rate: pace || null } });
          setDone("Scrub started.");
        }}
      >
        <TextField
          label="Scrub rate limit, bytes per second"
          value={rate}
          onChange={setRate}
          placeholder="from the configuration"
        />
      </Form>
      <Form
        action="Flush and drop fast tier"
        onSubmit={async () => {
          await api.post("/v1/pools/{pool}/cool", { path });
          setDone("Fast tier flushed and dropped.");
        }}
      >
        <p>
          <b>Flush and drop the fast tier.</b> Dirty data is written back to the slow tier, and clean copies
          are evicted: for measurements, and before the fast tier is removed.
        </p>
      </Form>
      <p role="status" className="about">
        {done}
      </p>
    </Dialog>
  );
}
