import { useState } from "react";
import { api } from "../../api/client";
import type { Volume } from "../../api/types";
import { bytes, parseBytes } from "../../format";
import { useMay } from "../../session";
import { SelectField, TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";

const PINS = [
  ["fast", "keep on the fast tier"],
  ["slow", "keep on the slow tier"],
  ["none", "no pin"],
] as const;

/** Ranges that are kept on a tier. */
export function Pins({ of }: { of: Volume }) {
  const operator = useMay("operator");
  const [to, setTo] = useState<"fast" | "slow" | "none">("fast");
  const [offset, setOffset] = useState("0");
  const [length, setLength] = useState("");
  const pins = of.placement?.pins ?? [];
  const from = parseBytes(offset);
  const wide = length.trim() === "" ? null : parseBytes(length);
  return (
    <details open={pins.length > 0}>
      <summary>Pinned ranges: {pins.length}</summary>
      <ul className="plain">
        {pins.map((pin) => (
          <li key={pin.offset}>
            {bytes(pin.offset)} to {pin.length ? bytes(pin.offset + pin.length) : "the end"}: {pin.tier} tier
          </li>
        ))}
      </ul>
      {operator && (
        <Form
          action="Pin range"
          disabled={from === undefined || wide === undefined}
          onSubmit={async () => {
            if (from === undefined || wide === undefined) return;
            await api.put("/v1/volumes/{pool}/{volume}", {
              path: { pool: of.pool, volume: of.name },
              body: { pins: [{ offset: from, length: wide, to }] },
            });
          }}
        >
          <div className="grid">
            <TextField label="From" value={offset} onChange={setOffset} />
            <TextField label="Length" value={length} onChange={setLength} placeholder="up to the end" />
            <SelectField label="Where" value={to} options={PINS} onChange={setTo} />
          </div>
        </Form>
      )}
    </details>
  );
}
