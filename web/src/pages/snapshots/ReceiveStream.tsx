import { useEffect, useRef, useState } from "react";
import { upload } from "../../api/client";
import { bytes, percent } from "../../format";
import { go } from "../../router";
import { Dialog } from "../../ui/Dialog";
import { CheckField, SelectField, TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";

interface Props {
  pools: string[];
  /** The volume that is to be brought on. */
  volume?: { pool: string; name: string };
  onClose: () => void;
}

/** A volume made, or brought on, from a file that a snapshot was sent to. It is sent as it is read, however long. */
export function ReceiveStream({ pools, volume, onClose }: Props) {
  const [pool, setPool] = useState(volume?.pool ?? pools[0] ?? "");
  const [name, setName] = useState(volume?.name ?? "");
  const [file, setFile] = useState<File>();
  const [force, setForce] = useState(false);
  const [typed, setTyped] = useState("");
  const [sent, setSent] = useState<number>();
  const abort = useRef(new AbortController());
  // Closing the dialog aborts the upload; the volume keeps its data and can resume from there.
  useEffect(() => {
    const controller = abort.current;
    return () => controller.abort();
  }, []);
  const full = `${pool}/${name}`;
  return (
    <Dialog title="Receive a snapshot" onClose={onClose}>
      <Form
        action={force ? "Roll back and receive" : "Receive snapshot"}
        danger={force}
        disabled={name === "" || file === undefined || (force && typed.trim() !== full)}
        onSubmit={async () => {
          if (!file) return;
          abort.current = new AbortController();
          setSent(0);
          try {
            await upload(
              "/v1/volumes/{pool}/{volume}/stream",
              { path: { pool, volume: name }, query: { force } },
              file,
              { onProgress: setSent, signal: abort.current.signal },
            );
          } finally {
            setSent(undefined);
          }
          onClose();
          go("volumes", pool, name);
        }}
      >
        {pools.length > 1 && (
          <SelectField
            label="Pool"
            value={pool}
            options={pools.map((known) => [known, known] as const)}
            onChange={setPool}
          />
        )}
        <TextField
          label="Volume"
          value={name}
          onChange={setName}
          hint="A new name for a full stream, or a volume that has the base snapshot"
        />
        <div className="field">
          <label>
            Stream file{" "}
            <input
              type="file"
              onChange={(event) => setFile(event.target.files?.[0])}
              disabled={sent !== undefined}
            />
          </label>
        </div>
        <CheckField
          label="First roll the volume back to the base snapshot: later writes are lost"
          checked={force}
          onChange={setForce}
        />
        {force && <TextField label={`Type ${full} to confirm`} value={typed} onChange={setTyped} />}
        {file && sent !== undefined && (
          <>
            <progress max={100} value={percent(sent, file.size)} aria-label="Sent" />
            <p className="about">
              {bytes(sent)} of {bytes(file.size)}
              {sent >= file.size && ": being made durable"}
            </p>
          </>
        )}
      </Form>
    </Dialog>
  );
}
